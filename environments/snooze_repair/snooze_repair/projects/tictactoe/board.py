"""A board of any size on which n in a row win."""


class Board:
    def __init__(self, size=3, need=3):
        if need > size:
            raise ValueError("need is larger than the board")
        self.size = size
        self.need = need
        self.cells = {}
        self.moves = []

    def turn(self):
        return "X" if len(self.moves) % 2 == 0 else "O"

    def play(self, row, column):
        """Set the mark of whose turn it is; the winner after that, or None."""
        if not (0 <= row < self.size and 0 <= column < self.size):
            raise ValueError("outside the board")
        if (row, column) in self.cells:
            raise ValueError("taken")
        if self.winner():
            raise ValueError("the game is over")
        self.cells[(row, column)] = self.turn()
        self.moves.append((row, column))
        return self.winner()

    def undo(self):
        if not self.moves:
            return False
        del self.cells[self.moves.pop()]
        return True

    def free(self):
        return [(r, c) for r in range(self.size) for c in range(self.size) if (r, c) not in self.cells]

    def winner(self):
        for (row, column), mark in self.cells.items():
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if all(self.cells.get((row + n * down, column + n * right)) == mark for n in range(self.need)):
                    return mark
        return None

    def over(self):
        return self.winner() is not None or not self.free()

    def rows(self):
        return ["".join(self.cells.get((r, c), ".") for c in range(self.size)) for r in range(self.size)]
