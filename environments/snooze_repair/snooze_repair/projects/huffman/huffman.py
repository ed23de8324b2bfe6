"""Huffman codes: frequent letters get short codes."""


def frequencies(text):
    counts = {}
    for letter in text:
        counts[letter] = counts.get(letter, 0) + 1
    return counts


def build(counts):
    """A tree: a letter, or a pair of trees. Ties are broken by the order in which nodes were made."""
    nodes = [(counts[letter], number, letter) for number, letter in enumerate(sorted(counts))]
    made = len(nodes)
    if not nodes:
        return None
    while len(nodes) > 1:
        nodes.sort(key=lambda node: node[:2])
        (a, _, left), (b, _, right) = nodes[0], nodes[1]
        nodes = nodes[2:]
        nodes.append((a + b, made, (left, right)))
        made += 1
    return nodes[0][2]


def codes(tree, prefix=""):
    """{letter: bits}; a single letter gets "0"."""
    if tree is None:
        return {}
    if isinstance(tree, str):
        return {tree: prefix or "0"}
    left, right = tree
    return {**codes(left, prefix + "0"), **codes(right, prefix + "1")}


def encode(text, table):
    return "".join(table[letter] for letter in text)


def decode(bits, table):
    letters = {code: letter for letter, code in table.items()}
    out, code = "", ""
    for bit in bits:
        code += bit
        if code in letters:
            out += letters[code]
            code = ""
    if code:
        raise ValueError("bits are left over")
    return out


def pack(bits):
    """Bits as bytes, with a first byte that says how many bits of the last one do not count."""
    spare = -len(bits) % 8
    padded = bits + "0" * spare
    return bytes([spare]) + bytes(int(padded[i : i + 8], 2) for i in range(0, len(padded), 8))


def unpack(data):
    if not data or data[0] > 7:
        raise ValueError("broken data")
    bits = "".join(f"{byte:08b}" for byte in data[1:])
    return bits[: len(bits) - data[0]]


def saving(text):
    """Percent of the 8 bits per letter that the code saves, rounded down."""
    if not text:
        return 0
    size = len(encode(text, codes(build(frequencies(text)))))
    return 100 - -(-100 * size // (8 * len(text)))
