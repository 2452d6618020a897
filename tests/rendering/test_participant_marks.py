"""Hues of agents that are drawn side by side."""

from conversations.rendering import participant_marks


def test_agents_drawn_side_by_side_have_hues_of_their_own():
    names = ["Conversation Format Coordinator", "Dialogue", "Incident Formatter", "Triage"]

    hues = participant_marks.distinct_hues(names)

    assert len(set(hues.values())) == len(names)
    assert hues[names[0]] == participant_marks.hue(names[0])
    many = [f"Agent {number}" for number in range(40)]
    assert set(participant_marks.distinct_hues(many).values()) == set(range(1, participant_marks.HUES + 1))


def test_an_agent_that_is_not_registered_has_a_hue_that_no_registered_one_has():
    names = [f"Agent {number}" for number in range(40)]
    stored = {"Dialogue": 3, "Triage": 4, "Insights": 9}

    try:
        participant_marks.remember_hues(stored)
        assert {participant_marks.hue(name) for name in names} == set(range(1, 11)) - {3, 4, 9}
        assert participant_marks.hue("Dialogue") == 3
        participant_marks.remember_hues({f"Known {number}": number for number in range(1, 11)})
        assert {participant_marks.hue(name) for name in names} == set(range(1, 11))
    finally:
        participant_marks.remember_hues({})
