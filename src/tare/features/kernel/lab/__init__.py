"""The lab: a throwaway virtual machine that serves as a host, with tare inside (see docs/lab.md)."""
