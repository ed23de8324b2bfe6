"""Words by their beginnings."""


class Trie:
    def __init__(self, words=()):
        self.children = {}
        self.count = 0
        self.weight = 0
        for word in words:
            self.add(word)

    def add(self, word, weight=1):
        """Add a word, or weight to a word that is there."""
        node = self
        for letter in word:
            node = node.children.setdefault(letter, Trie())
        if node.weight == 0:
            self._change(word, 1)
        node.weight += weight

    def _change(self, word, step):
        """Counts of words along the way."""
        node = self
        node.count += step
        for letter in word:
            node = node.children[letter]
            node.count += step

    def find(self, prefix):
        node = self
        for letter in prefix:
            if letter not in node.children:
                return None
            node = node.children[letter]
        return node

    def has(self, word):
        node = self.find(word)
        return node is not None and node.weight > 0

    def remove(self, word):
        """Take a word out with all its weight; False if it was not there."""
        if not self.has(word):
            return False
        self.find(word).weight = 0
        self._change(word, -1)
        node = self
        for letter in word:
            if node.children[letter].count == 0:
                del node.children[letter]
                break
            node = node.children[letter]
        return True

    def words(self, prefix=""):
        """All words with a prefix, sorted."""
        node = self.find(prefix)
        if node is None:
            return []
        found = [prefix] if node.weight > 0 else []
        for letter in sorted(node.children):
            found += self.words(prefix + letter)
        return found

    def best(self, prefix, k=3):
        """The k heaviest words with a prefix; equal ones by the alphabet."""
        found = [(-self.find(word).weight, word) for word in self.words(prefix)]
        return [word for _, word in sorted(found)[:k]]

    def how_many(self, prefix):
        node = self.find(prefix)
        return node.count if node else 0

    def longest_prefix(self, text):
        """The longest word that the text starts with, None if there is none."""
        best, node = None, self
        for place, letter in enumerate(text):
            if node.weight > 0:
                best = text[:place]
            if letter not in node.children:
                return best
            node = node.children[letter]
        return text if node.weight > 0 else best
