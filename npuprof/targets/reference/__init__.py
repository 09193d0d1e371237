"""The reference target: a small int8-quantised transformer on the CPU. It is not an NPU and says so everywhere."""
