"""External memory: SDRAM chips, their controller and pins, calibration and the memory test."""
