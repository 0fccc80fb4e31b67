// Cells of a Gowin netlist from a bitstream, except its logic and its pads.
//
// A PLL passes its input on and is locked after some cycles. The bench makes the PLL's output clock
// from the settings that are decoded from the bitstream.
module rPLL (
    input CLKIN, RESET, RESET_P, output CLKOUT, CLKOUTP, LOCK
);
    reg [5:0] count = 0;
    assign CLKOUT = CLKIN, CLKOUTP = CLKIN, LOCK = &count && !RESET && !RESET_P;
    always @(posedge CLKIN) if (!(&count)) count <= count + 1;
endmodule

// 2,048 words of 9 bits: 1, 2 or 4 of them at once, or a part of the 8 lowest bits of one. In words of
// 18 and 36 bits the lowest address bits are byte enables.
//
// A port is active while its BLKSEL equals its SELECT. It then writes or reads. During a write, its
// output is the new word (MODE 1), the old word (2), or unchanged (0). In words of 36 bits port A
// writes and port B reads. The lower half is at DIA and DOA, the upper at DIB and DOB. A word that
// one port reads while the other writes it is unknown.
module BSRAM #(
    parameter [18431:0] INIT = 0,
    parameter WIDTH_A = 18, WIDTH_B = 18, MODE_A = 0, MODE_B = 0, REGISTERED_A = 0, REGISTERED_B = 0,
    parameter SELECT_A = 0, SELECT_B = 0
) (
    input CLKA, CEA, OCEA, RESETA, WREA, CLKB, CEB, OCEB, RESETB, WREB,
    input [13:0] ADA, ADB, input [17:0] DIA, DIB, input [2:0] BLKSELA, BLKSELB,
    output [17:0] DOA, DOB
);
    reg [8:0] words [0:2047];
    integer i;
    initial for (i = 0; i < 2048; i = i + 1) words[i] = INIT[9 * i +: 9];

    `include "block_ram.v"

    wire on_a = CEA && BLKSELA == SELECT_A, on_b = CEB && BLKSELB == SELECT_B;
    wire writes_a = on_a && WREA, writes_b = on_b && WREB && WIDTH_B != 36;
    wire [10:0] at_a = begins(ADA, WIDTH_A), at_b = begins(ADB, WIDTH_B);
    wire [35:0] all_a = {words[at_a | 11'd3], words[at_a | 11'd2], words[at_a | 11'd1], words[at_a]};
    wire [35:0] all_b = {words[at_b | 11'd3], words[at_b | 11'd2], words[at_b | 11'd1], words[at_b]};
    wire [35:0] found_a = look(ADA, WIDTH_A, all_a), found_b = look(ADB, WIDTH_B, all_b);
    wire [3:0] bytes_a = writes_a ? enables(ADA, WIDTH_A) : 4'b0;
    wire [3:0] bytes_b = writes_b ? enables(ADB, WIDTH_B) : 4'b0;
    wire [11:0] end_a = {1'b0, at_a} + size(WIDTH_A), end_b = {1'b0, at_b} + size(WIDTH_B);
    wire same = at_a < end_b && at_b < end_a;
    wire clash_a = same && bytes_b != 0, clash_b = same && bytes_a != 0;
    reg [35:0] first_a = 0, first_b = 0, second_a = 0, second_b = 0;
    always @(posedge CLKA) begin
        if (RESETA) first_a <= 0;
        else if (on_a && (!writes_a || MODE_A == 2)) first_a <= clash_a ? 36'bx : found_a;
        else if (on_a && MODE_A == 1) first_a <= DIA;
        if (RESETA) second_a <= 0;
        else if (OCEA) second_a <= first_a;
        if (bytes_a[0]) words[at_a] <= put(ADA, WIDTH_A, DIA[8:0], words[at_a]);
        if (bytes_a[1]) words[at_a | 11'd1] <= DIA[17:9];
        if (bytes_a[2]) words[at_a | 11'd2] <= DIB[8:0];
        if (bytes_a[3]) words[at_a | 11'd3] <= DIB[17:9];
    end
    always @(posedge CLKB) begin
        if (RESETB) first_b <= 0;
        else if (on_b && (!writes_b || MODE_B == 2)) first_b <= clash_b ? 36'bx : found_b;
        else if (on_b && MODE_B == 1) first_b <= DIB;
        if (RESETB) second_b <= 0;
        else if (OCEB) second_b <= first_b;
        if (bytes_b[0]) words[at_b] <= put(ADB, WIDTH_B, DIB[8:0], words[at_b]);
        if (bytes_b[1]) words[at_b | 11'd1] <= DIB[17:9];
    end
    wire [35:0] out_a = REGISTERED_A ? second_a : first_a, out_b = REGISTERED_B ? second_b : first_b;
    assign DOA = WIDTH_B == 36 ? out_b[17:0] : out_a[17:0];
    assign DOB = WIDTH_B == 36 ? out_b[35:18] : out_b[17:0];
endmodule
