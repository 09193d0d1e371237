"""The kernel's messages about the NPU: from raw text of any source to classes and incidents."""
