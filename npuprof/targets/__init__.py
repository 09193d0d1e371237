"""What is timed. `base` is the public protocol; `load` finds a target by name."""
