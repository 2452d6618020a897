"""Layout of boxes in columns with labelled lines between them and no overlaps. Numbers for an SVG.

A column of boxes, a column of labels, a column of boxes, and so on. A box is as many columns from the roots as the
fewest lines that lead to it, so a line leads to the next column or stays within its own; it passes only its label:
between columns there is nothing but lines. The order within columns is found by barycenters, the positions by exact
least squares under minimum distances (pool adjacent violators). Of Python packages we looked at grandalf (GPL or EPL,
no release since 2023), which places no labels on lines.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BOX = (176.0, 44.0)  # px: width, height
LABEL = (34.0, 18.0)
GAP = 44.0  # px between a column of boxes and one of labels, in which lines bend
MARGIN = 16.0
_BETWEEN_BOXES, _BETWEEN_LABELS = 14.0, 6.0  # px at least
_PORT = 7.0  # px between two lines at one side of a box, less where there are many
_HEAD = 8.0  # px of an arrow's head
_SWEEPS = 6
_FLAT = 0.45  # of its width: columns of a lower drawing stand by turns higher and lower
_ASIDE = 150.0  # px by which they do at most

Point = tuple[float, float]


class Rectangle(NamedTuple):
    """The position and size of a box or a label; `x` and `y` are its top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Return the y of its center."""
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        """Return the x of its right side."""
        return self.x + self.width


class Line(NamedTuple):
    """A drawn line: its path to and from its label, its arrow head, and the label's position."""

    path: str
    head: str
    label: Rectangle


class Layout(NamedTuple):
    """All positions, in the order of the input."""

    boxes: list[Rectangle]
    lines: list[Line]
    width: float
    height: float


def layout(
    boxes: int, lines: Sequence[tuple[int, int]], roots: Iterable[int] = (), *, fills_room: bool = False
) -> Layout:
    """Lay out so many boxes and the lines between them (pairs of box numbers); roots are at the left. A drawing that
    `fills_room` is not left a low strip."""
    columns = _Columns(boxes, lines, _layers(boxes, lines, roots))
    columns.settle()
    if fills_room:
        columns.stagger()
    return columns.drawn()


def _layers(boxes: int, lines: Sequence[tuple[int, int]], roots: Iterable[int]) -> list[int]:
    """Return each box's distance from a root in lines; in a part without a root its first box is one."""
    near: dict[int, list[int]] = defaultdict(list)
    for start, end in lines:
        near[start].append(end)
        near[end].append(start)
    layer: dict[int, int] = {}
    for batch in (list(roots), *([box] for box in range(boxes))):
        waiting = deque(box for box in batch if box not in layer)
        layer.update(dict.fromkeys(waiting, 0))
        while waiting:
            box = waiting.popleft()
            for other in near[box]:
                if other not in layer:
                    layer[other] = layer[box] + 1
                    waiting.append(other)
    return [layer[box] for box in range(boxes)]


class _Columns:
    """Boxes and labels by column: in all lists boxes come first, then the label of each line."""

    def __init__(self, boxes: int, lines: Sequence[tuple[int, int]], layers: Sequence[int]) -> None:
        self._count, self._lines = boxes, lines
        self._column = [2 * layer for layer in layers]
        self._column += [2 * min(layers[start], layers[end]) + 1 for start, end in lines]
        self._members: list[list[int]] = [[] for _ in range(max(self._column, default=-1) + 1)]
        for item, column in enumerate(self._column):
            self._members[column].append(item)
        self._near: list[tuple[list[int], list[int]]] = [([], []) for _ in self._column]  # before, behind
        for label, ends in enumerate(lines, boxes):
            for box in dict.fromkeys(ends):
                is_before = self._column[box] < self._column[label]
                self._near[label][0 if is_before else 1].append(box)
                self._near[box][1 if is_before else 0].append(label)
        self._middle = [0.0] * len(self._column)

    def settle(self) -> None:
        """Compute the order in each column, then the positions."""
        for members in self._members:
            self._place(members, range(len(members)))
        for _ in range(_SWEEPS):
            for column in range(len(self._members)):
                self._sort(column, (0,))
            for column in reversed(range(len(self._members))):
                self._sort(column, (1,))
        for _ in range(_SWEEPS):
            for members in self._members:
                self._place(members, [self._wish(item, (0, 1)) for item in members])

    def stagger(self) -> None:
        """Move every other column of boxes down if the drawing is low for its width, as a chain is: lines and labels
        are between columns, so nothing comes to lie over anything else.
        """
        if not self._middle:
            return
        tops, bottoms = (
            [self._middle[n] + side * self._room(n) / 2 for n in range(len(self._column))] for side in (-1, 1)
        )
        layers = max(self._column) // 2 + 1
        wanted = _FLAT * layers * (BOX[0] + LABEL[0] + 2 * GAP)
        aside = min(_ASIDE, max(0.0, wanted - (max(bottoms) - min(tops)))) if layers > 1 else 0.0
        for item, column in enumerate(self._column):
            self._middle[item] += aside / 2 if column % 2 else aside * (column // 2 % 2)

    def _sort(self, column: int, sides: Sequence[int]) -> None:
        wishes = {item: self._wish(item, sides) for item in self._members[column]}
        self._members[column].sort(key=wishes.__getitem__)
        self._place(self._members[column], [wishes[item] for item in self._members[column]])

    def _wish(self, item: int, sides: Sequence[int]) -> float:
        near = [self._middle[other] for side in sides for other in self._near[item][side]]
        return sum(near) / len(near) if near else self._middle[item]

    def _place(self, members: Sequence[int], wishes: Sequence[float]) -> None:
        for item, middle in zip(members, _apart(wishes, [self._room(item) for item in members]), strict=True):
            self._middle[item] = middle

    def _room(self, item: int) -> float:
        return BOX[1] + _BETWEEN_BOXES if item < self._count else LABEL[1] + _BETWEEN_LABELS

    def drawn(self) -> Layout:
        """Return all positions, moved to the top left."""
        top = min((self._middle[item] - self._room(item) / 2 for item in range(len(self._column))), default=0.0)
        places = [self._rectangle(item, MARGIN - top) for item in range(len(self._column))]
        boxes, labels = places[: self._count], places[self._count :]
        width = max((place.right for place in places), default=0.0) + MARGIN
        height = max((place.y + place.height for place in places), default=0.0) + MARGIN
        return Layout(boxes, _Lines(boxes, labels, self._lines).drawn(), round(width, 1), round(height, 1))

    def _rectangle(self, item: int, down: float) -> Rectangle:
        layer, is_label = divmod(self._column[item], 2)
        width, height = LABEL if is_label else BOX
        x = MARGIN + layer * (BOX[0] + LABEL[0] + 2 * GAP) + (BOX[0] + GAP if is_label else 0)
        return Rectangle(round(x, 1), round(self._middle[item] + down - height / 2, 1), width, height)


def _apart(wishes: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wishes, in order, with the minimum distances."""
    offsets, at = [], 0.0
    for n, room in enumerate(rooms):
        at += (rooms[n - 1] + room) / 2 if n else 0.0
        offsets.append(at)
    pools: list[tuple[float, int]] = []  # mean, how many
    for wish, offset in zip(wishes, offsets, strict=True):
        mean, count = wish - offset, 1
        while pools and pools[-1][0] > mean:
            before, members = pools.pop()
            mean, count = (before * members + mean * count) / (members + count), members + count
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


class _Lines:
    """Lines from box to label to box: those at one side of a box leave it one below the other."""

    def __init__(
        self, boxes: Sequence[Rectangle], labels: Sequence[Rectangle], lines: Sequence[tuple[int, int]]
    ) -> None:
        self._boxes, self._labels, self._lines = boxes, labels, lines
        self._at: dict[tuple[int, int], list[tuple[float, int, int]]] = defaultdict(list)
        for n, ends in enumerate(lines):
            for end, box in enumerate(ends):
                self._at[box, self._side(n, box)].append((labels[n].middle, n, end))
        self._ports = dict(self._spread())

    def _side(self, line: int, box: int) -> int:
        """Return the side of a box at which a line leaves it; 1 is the right."""
        return 1 if self._boxes[box].x < self._labels[line].x else -1

    def _spread(self) -> Iterable[tuple[tuple[int, int], float]]:
        for (box, _), lines in self._at.items():
            apart = min(_PORT, (BOX[1] - 12) / len(lines))
            for place, (_, line, end) in enumerate(sorted(lines)):
                yield (line, end), self._boxes[box].middle + (place - (len(lines) - 1) / 2) * apart

    def drawn(self) -> list[Line]:
        """Return all drawn lines."""
        return [self._drawn(n, start, end) for n, (start, end) in enumerate(self._lines)]

    def _drawn(self, line: int, start: int, end: int) -> Line:
        label = self._labels[line]
        leaves, arrives = self._side(line, start), self._side(line, end)
        aside = 4.0 if leaves == arrives else 0.0  # back to where it came from: both at one side of the label
        up = -1 if self._ports[line, 0] <= self._ports[line, 1] else 1
        tip = (_edge(self._boxes[end], arrives), self._ports[line, 1])
        first = _curve(
            (_edge(self._boxes[start], leaves), self._ports[line, 0]),
            (_edge(label, -leaves), label.middle + up * aside),
        )
        second = _curve((_edge(label, -arrives), label.middle - up * aside), (tip[0] + arrives * (_HEAD - 1), tip[1]))
        back = tip[0] + arrives * _HEAD
        head = f"M{tip[0]:.1f} {tip[1]:.1f}L{back:.1f} {tip[1] - 3.6:.1f}V{tip[1] + 3.6:.1f}z"
        return Line(first + second, head, label)


def _edge(place: Rectangle, side: int) -> float:
    return place.right if side > 0 else place.x


def _curve(start: Point, end: Point) -> str:
    """Return a path between two points, horizontal at both, so that it stays between their columns."""
    (x1, y1), (x2, y2) = start, end
    bend = (x1 + x2) / 2
    return f"M{x1:.1f} {y1:.1f}C{bend:.1f} {y1:.1f},{bend:.1f} {y2:.1f},{x2:.1f} {y2:.1f}"
