"""Whether speculative decoding pays, by arithmetic over measured parts: pure, and never itself a measured loop."""
