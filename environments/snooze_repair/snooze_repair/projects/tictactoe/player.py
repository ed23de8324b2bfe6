"""A player that never loses on a small board."""

from board import Board


def score(board, me, depth=0):
    """Best result for `me` when everybody plays well: quick wins and late losses are better."""
    winner = board.winner()
    if winner:
        return 10 - depth if winner == me else depth - 10
    if board.over():
        return 0
    results = []
    for row, column in board.free():
        board.play(row, column)
        results.append(score(board, me, depth + 1))
        board.undo()
    return max(results) if board.turn() == me else min(results)


def best_move(board):
    """The first of the best moves, row by row."""
    me, best, found = board.turn(), None, None
    for row, column in board.free():
        board.play(row, column)
        value = score(board, me, 1)
        board.undo()
        if best is None or value > best:
            best, found = value, (row, column)
    return found


def replay(text, size=3, need=3):
    """A board from moves such as "00 11 02"."""
    board = Board(size, need)
    for move in text.split():
        board.play(int(move[0]), int(move[1]))
    return board
