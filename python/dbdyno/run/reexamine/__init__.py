"""Kept states of power cuts examined again: here, one after the other, or on the processors of many hosts."""
