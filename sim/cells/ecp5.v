// Cells of an ECP5 that a routed netlist has, but for its logic and its pads.
//
// A PLL passes its input on, and is locked after some cycles: the bench makes the clock that the
// PLL's words stand for, which are decoded from the bitstream.
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

// The enable is taken over while the clock is low, so that no pulse is cut.
module DCCA (input CLKI, CE, output CLKO);
    reg enabled = 0;
    always @(negedge CLKI) enabled <= CE;
    assign CLKO = CLKI & enabled;
endmodule

// 2,048 words of 9 bits, two of which are a word of 18, and 8 bits of which are 2, 4 or 8 words. In
// `INIT`, 16 rows of two words and 2 bits of padding are 320 bits. In words of 18 bits the two lowest
// address bits are byte enables.
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

    function [17:0] look(input [13:0] address, input integer width, input [8:0] low, input [8:0] high);
        case (width)
            18: look = {high, low};
            9: look = low;
            4: look = low[address[2] * 4 +: 4];
            2: look = low[address[2:1] * 2 +: 2];
            default: look = low[address[2:0]];
        endcase
    endfunction

    function [8:0] put(input [13:0] address, input integer width, input [17:0] data, input [8:0] old);
        begin
            put = old;
            case (width)
                18, 9: put = data[8:0];
                4: put[address[2] * 4 +: 4] = data[3:0];
                2: put[address[2:1] * 2 +: 2] = data[1:0];
                default: put[address[2:0]] = data[0];
            endcase
        end
    endfunction

    wire on_a = CEA && CSA == 0, on_b = CEB && CSB == 0;
    wire [10:0] at_a = DATA_WIDTH_A == 18 ? {ADA[13:4], 1'b0} : ADA[13:3];
    wire [10:0] at_b = DATA_WIDTH_B == 18 ? {ADB[13:4], 1'b0} : ADB[13:3];
    wire [17:0] found_a = look(ADA, DATA_WIDTH_A, words[at_a], words[at_a | 11'd1]);
    wire [17:0] found_b = look(ADB, DATA_WIDTH_B, words[at_b], words[at_b | 11'd1]);
    wire low_a = WEA && (DATA_WIDTH_A != 18 || ADA[0]), high_a = WEA && DATA_WIDTH_A == 18 && ADA[1];
    wire low_b = WEB && (DATA_WIDTH_B != 18 || ADB[0]), high_b = WEB && DATA_WIDTH_B == 18 && ADB[1];
    reg [17:0] first_a = 0, first_b = 0, second_a = 0, second_b = 0;
    always @(posedge CLKA) begin
        if (RSTA) first_a <= 0;
        else if (on_a && (!WEA || WRITEMODE_A == "READBEFOREWRITE")) first_a <= found_a;
        else if (on_a && WRITEMODE_A == "WRITETHROUGH") first_a <= DIA;
        if (on_a && low_a) words[at_a] <= put(ADA, DATA_WIDTH_A, DIA, words[at_a]);
        if (on_a && high_a) words[at_a | 11'd1] <= DIA[17:9];
        if (RSTA) second_a <= 0;
        else if (OCEA) second_a <= first_a;
    end
    always @(posedge CLKB) begin
        if (RSTB) first_b <= 0;
        else if (on_b && (!WEB || WRITEMODE_B == "READBEFOREWRITE")) first_b <= found_b;
        else if (on_b && WRITEMODE_B == "WRITETHROUGH") first_b <= DIB;
        if (on_b && low_b) words[at_b] <= put(ADB, DATA_WIDTH_B, DIB, words[at_b]);
        if (on_b && high_b) words[at_b | 11'd1] <= DIB[17:9];
        if (RSTB) second_b <= 0;
        else if (OCEB) second_b <= first_b;
    end
    assign DOA = REGMODE_A == "OUTREG" ? second_a : first_a;
    assign DOB = REGMODE_B == "OUTREG" ? second_b : first_b;
endmodule
