"""The XRT target: a pass plan run on an AMD NPU through the machine's pyxrt. Its parts are public: see docs/xrt.md."""
