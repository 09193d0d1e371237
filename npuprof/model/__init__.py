"""The nouns: frozen, without input or output, importing nothing else of this project."""
