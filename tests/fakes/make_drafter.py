"""A drafter with the target's own tokenizer: a copy of a GGUF model without some of its blocks. Real weights, no training."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gguf import GGUFReader, GGUFValueType, GGUFWriter


def without_blocks(source: Path, target: Path, dropped: Collection[int]) -> None:
    """Writes `source` without the transformer blocks `dropped`, the others renumbered."""
    reader = GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    blocks = int(reader.fields[f"{architecture}.block_count"].contents())
    number = {old: new for new, old in enumerate(b for b in range(blocks) if b not in dropped)}
    writer = GGUFWriter(target, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = len(number) if key == f"{architecture}.block_count" else field.contents()
        kind = field.types[0]
        writer.add_key_value(key, value, kind, field.types[-1] if kind == GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        name = tensor.name
        if name.startswith("blk."):
            _, block, rest = name.split(".", 2)
            if int(block) not in number:
                continue
            name = f"blk.{number[int(block)]}.{rest}"
        writer.add_tensor(name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
