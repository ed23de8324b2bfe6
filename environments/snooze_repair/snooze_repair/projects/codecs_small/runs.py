"""Runs of equal letters as a number and the letter."""


def shrink(text):
    """ "aaab" as "3ab": single letters have no number. Digits and backslashes get a backslash."""
    out, i = "", 0
    while i < len(text):
        end = i
        while end < len(text) and text[end] == text[i]:
            end += 1
        letter = "\\" + text[i] if text[i].isdigit() or text[i] == "\\" else text[i]
        out += (str(end - i) if end - i > 1 else "") + letter
        i = end
    return out


def expand(text):
    out, number, i = "", "", 0
    while i < len(text):
        c = text[i]
        if c.isdigit():
            number += c
        else:
            if c == "\\":
                i += 1
                if i == len(text):
                    raise ValueError("nothing after a backslash")
                c = text[i]
            out += c * int(number or 1)
            number = ""
        i += 1
    if number:
        raise ValueError("nothing after a number")
    return out
