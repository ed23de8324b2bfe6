"""The authored contrast set: 12 categories × 9 look-alike mechanisms × 3 phrasings × 2 sides."""
