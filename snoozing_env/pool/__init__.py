"""Pool hygiene (E5): duplicates, evaluation items that leaked into training, and the evidence for each.

    sources ─▶ rows ─▶ words ─▶ grams ─┬▶ near: LSH candidates, exact Jaccard ─▶ clusters
                                       ├▶ contamination: shared 13-grams that are not boilerplate
                                       └▶ neighbours: embeddings (optional)
                                                     └─▶ clusters.jsonl · exclude.jsonl · summary.json

numpy and datasketch only; a recipe reads the two lists back through `[environment] exclude` and `clusters`.
"""
