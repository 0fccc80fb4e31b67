// Cells of a routed ECP5 netlist, except its logic and its pads.
//
// A PLL passes its input on and is locked after some cycles. The bench makes the PLL's output clock
// from the settings that are decoded from the bitstream.
module EHXPLLL #(
    parameter CLKI_DIV = 1, CLKFB_DIV = 1, CLKOP_DIV = 1, CLKOS_DIV = 1, CLKOP_CPHASE = 0,
    CLKOS_CPHASE = 0, CLKOP_ENABLE = "", CLKOS_ENABLE = "", CLKOS2_ENABLE = "", CLKOS3_ENABLE = "",
    FEEDBK_PATH = "", OUTDIVIDER_MUXA = "", OUTDIVIDER_MUXB = ""
) (
    input CLKI, CLKFB, RST, STDBY, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG,
    PLLWAKESYNC, ENCLKOP, ENCLKOS, output CLKOP, CLKOS, LOCK
);
    reg [5:0] count = 0;
    assign CLKOP = CLKI, CLKOS = CLKI, LOCK = &count && !RST && !STDBY;
    always @(posedge CLKI) if (!(&count)) count <= count + 1;
endmodule

// The enable changes only while the clock is low, so that no clock pulse is cut.
module DCCA (input CLKI, CE, output CLKO);
    reg enabled = 0;
    always @(negedge CLKI) enabled <= CE;
    assign CLKO = CLKI & enabled;
endmodule

// A pad's value at both edges of a cycle, two rising edges after the first of them.
module IDDRX1F (input SCLK, RST, D, output reg Q0, Q1);
    reg at_rise, at_fall;
    always @(negedge SCLK or posedge RST) if (RST) at_fall <= 0; else at_fall <= D;
    always @(posedge SCLK or posedge RST)
        if (RST) {Q1, Q0, at_rise} <= 0;
        else {Q1, Q0, at_rise} <= {at_fall, at_rise, D};
endmodule

// Both halves of a cycle, the first while the clock is high, three rising edges later.
module ODDRX1F (input SCLK, RST, D0, D1, output Q);
    reg [1:0] first = 0, second = 0, last = 0;
    always @(posedge SCLK or posedge RST)
        if (RST) {last, second, first} <= 0;
        else {last, second, first} <= {second, first, D1, D0};
    assign Q = SCLK ? last[0] : last[1];
endmodule

module pad_register #(parameter START = 0) (input clk, clear, enable, d, output reg q);
    initial q = START;
    always @(posedge clk or posedge clear) if (clear) q <= START; else if (enable) q <= d;
endmodule

// 2,048 words of 9 bits: 1, 2 or 4 of them at once, or a part of the 8 lowest bits of one. In `INIT`,
// 16 rows of two words and 2 bits of padding are 320 bits. In words of 18 and 36 bits the lowest
// address bits are byte enables.
//
// In words of 36 bits port A writes and port B reads. The lower half is at DIA and DOA, the upper at
// DIB and DOB. A narrower word that port B reads is at DOB. A word that one port reads while the
// other writes it is unknown.
module DP16KD #(
    parameter [20479:0] INIT = 0,
    parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18, REGMODE_A = "NOREG", REGMODE_B = "NOREG",
    parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL", RESETMODE = "SYNC",
    parameter ASYNC_RESET_RELEASE = "SYNC", GSR = "DISABLED", CSDECODE_A = "0b000",
    parameter CSDECODE_B = "0b000"
) (
    input [17:0] DIA, DIB, input [13:0] ADA, ADB, input CEA, OCEA, CLKA, WEA, RSTA, CEB, OCEB, CLKB,
    input WEB, RSTB, input [2:0] CSA, CSB, output [17:0] DOA, DOB
);
    reg [8:0] words [0:2047];
    integer i;
    initial for (i = 0; i < 2048; i = i + 1) words[i] = INIT[i / 2 * 20 + i % 2 * 9 +: 9];

    `include "block_ram.v"

    wire on_a = CEA && CSA == 0, on_b = CEB && CSB == 0;
    wire [10:0] at_a = begins(ADA, DATA_WIDTH_A), at_b = begins(ADB, DATA_WIDTH_B);
    wire [35:0] all_a = {words[at_a | 11'd3], words[at_a | 11'd2], words[at_a | 11'd1], words[at_a]};
    wire [35:0] all_b = {words[at_b | 11'd3], words[at_b | 11'd2], words[at_b | 11'd1], words[at_b]};
    wire [35:0] found_a = look(ADA, DATA_WIDTH_A, all_a), found_b = look(ADB, DATA_WIDTH_B, all_b);
    wire [3:0] write_a = on_a && WEA ? enables(ADA, DATA_WIDTH_A) : 4'b0;
    wire [3:0] write_b = on_b && WEB ? enables(ADB, DATA_WIDTH_B) : 4'b0;
    wire [11:0] end_a = {1'b0, at_a} + size(DATA_WIDTH_A), end_b = {1'b0, at_b} + size(DATA_WIDTH_B);
    wire same = at_a < end_b && at_b < end_a;
    wire clash_a = same && write_b != 0, clash_b = same && write_a != 0;
    wire clear_a = RESETMODE == "ASYNC" && RSTA, clear_b = RESETMODE == "ASYNC" && RSTB;
    reg [35:0] first_a = 0, first_b = 0, second_a = 0, second_b = 0;
    always @(posedge CLKA or posedge clear_a)
        if (clear_a) first_a <= 0;
        else if (RSTA) first_a <= 0;
        else if (on_a && (!WEA || WRITEMODE_A == "READBEFOREWRITE"))
            first_a <= clash_a ? 36'bx : found_a;
        else if (on_a && WRITEMODE_A == "WRITETHROUGH") first_a <= DIA;
    always @(posedge CLKA or posedge clear_a)
        if (clear_a) second_a <= 0;
        else if (RSTA) second_a <= 0;
        else if (OCEA) second_a <= first_a;
    always @(posedge CLKB or posedge clear_b)
        if (clear_b) first_b <= 0;
        else if (RSTB) first_b <= 0;
        else if (on_b && (!WEB || WRITEMODE_B == "READBEFOREWRITE"))
            first_b <= clash_b ? 36'bx : found_b;
        else if (on_b && WRITEMODE_B == "WRITETHROUGH") first_b <= DIB;
    always @(posedge CLKB or posedge clear_b)
        if (clear_b) second_b <= 0;
        else if (RSTB) second_b <= 0;
        else if (OCEB) second_b <= first_b;
    always @(posedge CLKA) begin
        if (write_a[0]) words[at_a] <= put(ADA, DATA_WIDTH_A, DIA[8:0], words[at_a]);
        if (write_a[1]) words[at_a | 11'd1] <= DIA[17:9];
        if (write_a[2]) words[at_a | 11'd2] <= DIB[8:0];
        if (write_a[3]) words[at_a | 11'd3] <= DIB[17:9];
    end
    always @(posedge CLKB) begin
        if (write_b[0]) words[at_b] <= put(ADB, DATA_WIDTH_B, DIB[8:0], words[at_b]);
        if (write_b[1]) words[at_b | 11'd1] <= DIB[17:9];
    end
    wire [35:0] out_a = REGMODE_A == "OUTREG" ? second_a : first_a;
    wire [35:0] out_b = REGMODE_B == "OUTREG" ? second_b : first_b;
    assign DOA = DATA_WIDTH_B == 36 ? out_b[17:0] : out_a[17:0];
    assign DOB = DATA_WIDTH_B == 36 ? out_b[35:18] : out_b[17:0];
endmodule
