"""The daemon: a queue of campaigns on a shared machine. It opens no device, and imports neither pyxrt nor numpy."""
