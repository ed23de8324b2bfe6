"""Grading a mathematical answer: extract, clean, take apart, compare."""

from snooze_math.grading.grade import decide, grade, grade_async

__all__ = ["decide", "grade", "grade_async"]
