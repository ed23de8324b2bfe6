"""Does a reply refuse? Rules and a small weighted sum, measured against human labels."""
