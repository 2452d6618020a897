"""Hues of agents that are drawn side by side."""

from conversations.rendering import participant_marks


def test_agents_drawn_side_by_side_have_hues_of_their_own():
    names = ["Conversation Format Coordinator", "Dialogue", "Incident Formatter", "Triage"]

    hues = participant_marks.distinct_hues(names)

    assert len(set(hues.values())) == len(names)
    assert hues[names[0]] == participant_marks.hue(names[0])
    many = [f"Agent {number}" for number in range(40)]
    assert set(participant_marks.distinct_hues(many).values()) == set(range(1, participant_marks.HUES + 1))
