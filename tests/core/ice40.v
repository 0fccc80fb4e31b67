// What an iCE40 board's design needs of its fabric to be simulated: pins, and a PLL that locks after
// 20 us and loses its lock for a while at 100 us.
`timescale 1ns / 1ps
module SB_IO #(parameter IO_STANDARD = "", PIN_TYPE = 0, PULLUP = 0) (
    inout PACKAGE_PIN, input D_OUT_0, input OUTPUT_ENABLE, output D_IN_0
);
    assign D_IN_0 = PACKAGE_PIN;
    assign PACKAGE_PIN = OUTPUT_ENABLE ? D_OUT_0 : 1'bz;
endmodule

module SB_GB_IO #(parameter IO_STANDARD = "", PIN_TYPE = 0) (
    inout PACKAGE_PIN, output GLOBAL_BUFFER_OUTPUT
);
    assign GLOBAL_BUFFER_OUTPUT = PACKAGE_PIN;
endmodule

module pll (output reg clk, output reg lock);
    initial begin
        clk = 0;
        lock = 0;
        #20000 lock = 1;
        #80000 lock = 0;
        #2000 lock = 1;
    end
    always #(`HALF_PERIOD) clk = !clk;
endmodule

module SB_PLL40_PAD #(parameter DIVR = 0, DIVF = 0, DIVQ = 0, FILTER_RANGE = 0, FEEDBACK_PATH = "") (
    input PACKAGEPIN, input RESETB, input BYPASS, output PLLOUTGLOBAL, output LOCK
);
    pll pll (.clk(PLLOUTGLOBAL), .lock(LOCK));
endmodule

module SB_PLL40_CORE #(parameter DIVR = 0, DIVF = 0, DIVQ = 0, FILTER_RANGE = 0, FEEDBACK_PATH = "") (
    input REFERENCECLK, input RESETB, input BYPASS, output PLLOUTGLOBAL, output LOCK
);
    pll pll (.clk(PLLOUTGLOBAL), .lock(LOCK));
endmodule

module bench;
    reg level = 0;
    wire clk12 = level;
    top dut (.clk12_0__io(clk12));
    always #(1e9 / 12e6 / 2) level = !level;
    always @(dut.system.rst) $display("%b %0d", dut.system.rst, $time);
    initial #150000 $finish;
endmodule
