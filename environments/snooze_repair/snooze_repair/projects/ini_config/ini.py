"""Settings in sections."""


class IniError(ValueError):
    pass


def parse(text):
    """{section: {key: value}}; what comes before the first section is in "". Values may go on in indented lines."""
    sections = {"": {}}
    section, key = "", None
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if line[0] in " \t" and key is not None:
            sections[section][key] += "\n" + bare
        elif bare[0] == "[":
            if bare[-1] != "]":
                raise IniError(f"line {number}: a section is not closed")
            section, key = bare[1:-1].strip(), None
            sections.setdefault(section, {})
        else:
            key, sep, value = bare.partition("=")
            if not sep:
                raise IniError(f"line {number}: no =")
            key = key.strip().lower()
            if key in sections[section]:
                raise IniError(f"line {number}: {key} is set twice")
            sections[section][key] = value.strip()
    return sections


class Settings:
    """Lookup with a fallback to the unnamed section, and ${key} or ${section:key} in values."""

    def __init__(self, text=""):
        self.sections = parse(text)

    def raw(self, section, key):
        for name in (section, ""):
            if key in self.sections.get(name, {}):
                return self.sections[name][key]
        return None

    def get(self, section, key, default=None, depth=0):
        value = self.raw(section, key.lower())
        if value is None:
            return default
        if depth > 9:
            raise IniError(f"{key} refers to itself")
        return self._fill(section, value, depth)

    def _fill(self, section, value, depth):
        out = ""
        while "${" in value:
            before, _, rest = value.partition("${")
            name, end, value = rest.partition("}")
            if not end:
                raise IniError("a reference is not closed")
            other, colon, key = name.rpartition(":")
            found = self.get(other if colon else section, key, depth=depth + 1)
            if found is None:
                raise IniError(f"nothing is called {name}")
            out += before + found
        return out + value

    def number(self, section, key, default=0):
        value = self.get(section, key)
        if value is None:
            return default
        try:
            return int(value)
        except ValueError:
            raise IniError(f"{key} is {value!r}, not a number") from None

    def flag(self, section, key, default=False):
        value = self.get(section, key)
        if value is None:
            return default
        if value.lower() in ("yes", "true", "on", "1"):
            return True
        if value.lower() in ("no", "false", "off", "0"):
            return False
        raise IniError(f"{key} is {value!r}, not yes or no")

    def items(self, section, key):
        """Entries separated by commas or line ends, without empty ones."""
        value = self.get(section, key, "")
        return [part.strip() for part in value.replace("\n", ",").split(",") if part.strip()]
