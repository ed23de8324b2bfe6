"""A reader for JSON text."""


class JsonError(ValueError):
    """Text that is no JSON, with the place where it goes wrong."""

    def __init__(self, message, place):
        super().__init__(f"{message} at {place}")
        self.place = place


ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
WORDS = {"true": True, "false": False, "null": None}


def read(text):
    value, place = value_at(text, skip(text, 0))
    place = skip(text, place)
    if place != len(text):
        raise JsonError("extra text", place)
    return value


def skip(text, place):
    while place < len(text) and text[place] in " \t\n\r":
        place += 1
    return place


def value_at(text, place):
    """(value, place after it)"""
    if place >= len(text):
        raise JsonError("a value is missing", place)
    sign = text[place]
    if sign == "{":
        return object_at(text, place)
    if sign == "[":
        return list_at(text, place)
    if sign == '"':
        return string_at(text, place)
    if sign == "-" or sign.isdigit():
        return number_at(text, place)
    for word, value in WORDS.items():
        if text.startswith(word, place):
            return value, place + len(word)
    raise JsonError("unexpected character", place)


def string_at(text, place):
    start, out = place, ""
    place += 1
    while place < len(text):
        sign = text[place]
        if sign == '"':
            return out, place + 1
        if sign == "\\":
            place += 1
            if place >= len(text) or text[place] not in ESCAPES:
                raise JsonError("unknown escape", place)
            out += ESCAPES[text[place]]
        else:
            out += sign
        place += 1
    raise JsonError("a string is not closed", start)


def number_at(text, place):
    start = place
    if text[place] == "-":
        place += 1
    digits = place
    while place < len(text) and text[place].isdigit():
        place += 1
    if place == digits or (text[digits] == "0" and place - digits > 1):
        raise JsonError("bad number", start)
    whole = True
    if place < len(text) and text[place] == ".":
        whole = False
        place += 1
        digits = place
        while place < len(text) and text[place].isdigit():
            place += 1
        if place == digits:
            raise JsonError("bad number", start)
    return (int if whole else float)(text[start:place]), place


def list_at(text, place):
    values = []
    place = skip(text, place + 1)
    if text[place : place + 1] == "]":
        return values, place + 1
    while True:
        value, place = value_at(text, skip(text, place))
        values.append(value)
        place = skip(text, place)
        if text[place : place + 1] == "]":
            return values, place + 1
        if text[place : place + 1] != ",":
            raise JsonError("a comma is missing", place)
        place += 1


def object_at(text, place):
    found = {}
    place = skip(text, place + 1)
    if text[place : place + 1] == "}":
        return found, place + 1
    while True:
        place = skip(text, place)
        if text[place : place + 1] != '"':
            raise JsonError("a key is missing", place)
        key, place = string_at(text, place)
        place = skip(text, place)
        if text[place : place + 1] != ":":
            raise JsonError("a colon is missing", place)
        found[key], place = value_at(text, skip(text, place + 1))
        place = skip(text, place)
        if text[place : place + 1] == "}":
            return found, place + 1
        if text[place : place + 1] != ",":
            raise JsonError("a comma is missing", place)
        place += 1
