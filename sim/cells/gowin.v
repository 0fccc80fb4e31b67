// Cells of a Gowin that a routed netlist has, but for its logic and its pads.
//
// A PLL passes its input on, and is locked after some cycles: the bench makes the clock that the
// PLL's words stand for, which are decoded from the bitstream.
module rPLL (
    input CLKIN, CLKFB, RESET, RESET_P, input [5:0] FBDSEL, IDSEL, ODSEL,
    input [3:0] PSDA, DUTYDA, FDLY, output CLKOUT, CLKOUTP, CLKOUTD, CLKOUTD3, LOCK
);
    reg [5:0] count = 0;
    assign CLKOUT = CLKIN, CLKOUTP = CLKIN, LOCK = &count && !RESET && !RESET_P;
    always @(posedge CLKIN) if (!(&count)) count <= count + 1;
endmodule

// A port of 2,048 words of 9 bits: 1, 2 or 4 of them at once, or a part of the 8 lowest bits of one. In
// words of 18 and 36 bits the lowest address bits are byte enables.
module bsram_port #(parameter WIDTH = 9) (
    input [13:0] address, output [10:0] at, output [3:0] enables
);
    assign at = WIDTH >= 32 ? {address[13:5], 2'b0} : WIDTH >= 16 ? {address[13:4], 1'b0} : address[13:3];
    assign enables = WIDTH >= 32 ? address[3:0] : WIDTH >= 16 ? {2'b0, address[1:0]} : 4'b1;
endmodule

// Two ports. A write mode of 1 shows what is written, of 2 what was there, of 0 neither.
module DP #(
    parameter [18431:0] INIT = 0, parameter BIT_WIDTH_0 = 9, BIT_WIDTH_1 = 9,
    parameter WRITE_MODE0 = 0, WRITE_MODE1 = 0
) (
    input CLKA, CEA, OCEA, RESETA, WREA, CLKB, CEB, OCEB, RESETB, WREB,
    input [13:0] ADA, ADB, input [17:0] DIA, DIB, input [2:0] BLKSELA, BLKSELB,
    output reg [17:0] DOA, DOB
);
    reg [8:0] words [0:2047];
    integer i;
    initial for (i = 0; i < 2048; i = i + 1) words[i] = INIT[9 * i +: 9];
    wire [10:0] at_a, at_b;
    wire [3:0] on_a, on_b;
    bsram_port #(.WIDTH(BIT_WIDTH_0)) port_a (.address(ADA), .at(at_a), .enables(on_a));
    bsram_port #(.WIDTH(BIT_WIDTH_1)) port_b (.address(ADB), .at(at_b), .enables(on_b));
    wire [17:0] found_a = {BIT_WIDTH_0 >= 16 ? words[at_a | 11'd1] : 9'd0, words[at_a]};
    wire [17:0] found_b = {BIT_WIDTH_1 >= 16 ? words[at_b | 11'd1] : 9'd0, words[at_b]};
    always @(posedge CLKA) begin
        if (RESETA) DOA <= 0;
        else if (CEA && (!WREA || WRITE_MODE0 == 2)) DOA <= found_a;
        else if (CEA && WRITE_MODE0 == 1) DOA <= DIA;
        if (CEA && WREA && on_a[0]) words[at_a] <= DIA[8:0];
        if (CEA && WREA && on_a[1]) words[at_a | 11'd1] <= DIA[17:9];
    end
    always @(posedge CLKB) begin
        if (RESETB) DOB <= 0;
        else if (CEB && (!WREB || WRITE_MODE1 == 2)) DOB <= found_b;
        else if (CEB && WRITE_MODE1 == 1) DOB <= DIB;
        if (CEB && WREB && on_b[0]) words[at_b] <= DIB[8:0];
        if (CEB && WREB && on_b[1]) words[at_b | 11'd1] <= DIB[17:9];
    end
endmodule

// A port that writes and a port that reads.
module SDP #(
    parameter [18431:0] INIT = 0, parameter BIT_WIDTH_0 = 36, BIT_WIDTH_1 = 36
) (
    input CLKA, CEA, RESETA, WREA, CLKB, CEB, RESETB, WREB, OCE, OCEA, OCEB,
    input [13:0] ADA, ADB, input [35:0] DI, input [2:0] BLKSELA, BLKSELB, output reg [35:0] DO
);
    reg [8:0] words [0:2047];
    integer i;
    initial for (i = 0; i < 2048; i = i + 1) words[i] = INIT[9 * i +: 9];
    wire [10:0] at_a, at_b;
    wire [3:0] on_a, on_b;
    bsram_port #(.WIDTH(BIT_WIDTH_0)) port_a (.address(ADA), .at(at_a), .enables(on_a));
    bsram_port #(.WIDTH(BIT_WIDTH_1)) port_b (.address(ADB), .at(at_b), .enables(on_b));
    always @(posedge CLKA) if (CEA) begin
        if (on_a[0]) words[at_a] <= DI[8:0];
        if (on_a[1]) words[at_a | 11'd1] <= DI[17:9];
        if (on_a[2]) words[at_a | 11'd2] <= DI[26:18];
        if (on_a[3]) words[at_a | 11'd3] <= DI[35:27];
    end
    always @(posedge CLKB)
        if (RESETB) DO <= 0;
        else if (CEB)
            DO <= {words[at_b | 11'd3], words[at_b | 11'd2], words[at_b | 11'd1], words[at_b]};
endmodule
