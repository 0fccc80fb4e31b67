// Cells of an iCE40 netlist from a bitstream. A block RAM that is read and written in the same cycle
// returns the old word.
//
// A PLL passes its input on and is locked after some cycles. The bench makes the PLL's output clock
// from the settings that are decoded from the bitstream.
module SB_RAM40_4K #(
    parameter READ_MODE = 0, parameter WRITE_MODE = 0,
    parameter [255:0] INIT_0 = 0, INIT_1 = 0, INIT_2 = 0, INIT_3 = 0, INIT_4 = 0, INIT_5 = 0,
    INIT_6 = 0, INIT_7 = 0, INIT_8 = 0, INIT_9 = 0, INIT_A = 0, INIT_B = 0, INIT_C = 0, INIT_D = 0,
    INIT_E = 0, INIT_F = 0
) (
    output reg [15:0] RDATA,
    input RCLK, RCLKE, RE, input [10:0] RADDR,
    input WCLK, WCLKE, WE, input [10:0] WADDR, input [15:0] MASK, WDATA
);
    // A word of 16 bits is one, two, four or eight words; data are at one bit of each group.
    localparam READ = 1 << READ_MODE, WRITE = 1 << WRITE_MODE;
    localparam READ_BIT = READ == 1 ? 0 : READ / 2 - 1, WRITE_BIT = WRITE == 1 ? 0 : WRITE / 2 - 1;
    reg [15:0] words [0:255];
    integer i, bit_;
    initial for (i = 0; i < 16; i = i + 1) begin
        words[i] = INIT_0[16 * i +: 16];
        words[16 + i] = INIT_1[16 * i +: 16];
        words[32 + i] = INIT_2[16 * i +: 16];
        words[48 + i] = INIT_3[16 * i +: 16];
        words[64 + i] = INIT_4[16 * i +: 16];
        words[80 + i] = INIT_5[16 * i +: 16];
        words[96 + i] = INIT_6[16 * i +: 16];
        words[112 + i] = INIT_7[16 * i +: 16];
        words[128 + i] = INIT_8[16 * i +: 16];
        words[144 + i] = INIT_9[16 * i +: 16];
        words[160 + i] = INIT_A[16 * i +: 16];
        words[176 + i] = INIT_B[16 * i +: 16];
        words[192 + i] = INIT_C[16 * i +: 16];
        words[208 + i] = INIT_D[16 * i +: 16];
        words[224 + i] = INIT_E[16 * i +: 16];
        words[240 + i] = INIT_F[16 * i +: 16];
    end
    wire [15:0] word = words[RADDR[7:0]];
    reg [15:0] merged;
    always @* begin
        merged = words[WADDR[7:0]];
        for (bit_ = 0; bit_ < 16; bit_ = bit_ + 1)
            if (WRITE == 1 ? !MASK[bit_] : bit_ % WRITE == (WADDR[10:8] & (WRITE - 1)))
                merged[bit_] = WDATA[bit_ / WRITE * WRITE + WRITE_BIT];
    end
    always @(posedge WCLK) if (WCLKE && WE) words[WADDR[7:0]] <= merged;
    genvar at;
    generate for (at = 0; at < 16; at = at + 1) begin : reads
        if (at % READ == READ_BIT) begin : data
            always @(posedge RCLK)
                if (RCLKE && RE) RDATA[at] <= word[at - READ_BIT + (RADDR[10:8] & (READ - 1))];
        end else begin : nothing
            initial RDATA[at] = 0;
        end
    end endgenerate
endmodule

module SB_SPRAM256KA (
    input [13:0] ADDRESS, input [15:0] DATAIN, input [3:0] MASKWREN,
    input WREN, CHIPSELECT, CLOCK, STANDBY, SLEEP, POWEROFF,
    output reg [15:0] DATAOUT
);
    reg [15:0] words [0:16383];
    wire on = POWEROFF && !SLEEP && !STANDBY && CHIPSELECT;
    wire [15:0] mask = {{4{MASKWREN[3]}}, {4{MASKWREN[2]}}, {4{MASKWREN[1]}}, {4{MASKWREN[0]}}};
    always @(posedge CLOCK) if (on) begin
        if (WREN) words[ADDRESS] <= (words[ADDRESS] & ~mask) | (DATAIN & mask);
        else DATAOUT <= words[ADDRESS];
    end
endmodule

module lock_after (input clk, output locked);
    reg [5:0] count = 0;
    assign locked = &count;
    always @(posedge clk) if (!locked) count <= count + 1;
endmodule

module SB_PLL40_PAD #(
    parameter FEEDBACK_PATH = "", DELAY_ADJUSTMENT_MODE_FEEDBACK = "",
    DELAY_ADJUSTMENT_MODE_RELATIVE = "", PLLOUT_SELECT = "", SHIFTREG_DIV_MODE = 0, FDA_FEEDBACK = 0,
    FDA_RELATIVE = 0, DIVR = 0, DIVF = 0, DIVQ = 0, FILTER_RANGE = 0, ENABLE_ICEGATE = 0, TEST_MODE = 0
) (
    input PACKAGEPIN, EXTFEEDBACK, input [7:0] DYNAMICDELAY, input BYPASS, RESETB, LATCHINPUTVALUE,
    input SDI, SCLK, output PLLOUTCORE, PLLOUTGLOBAL, LOCK, SDO
);
    wire locked;
    lock_after lock_after (.clk(PACKAGEPIN), .locked(locked));
    assign PLLOUTCORE = PACKAGEPIN, PLLOUTGLOBAL = PACKAGEPIN, LOCK = locked && RESETB && !BYPASS;
endmodule

module SB_PLL40_CORE #(
    parameter FEEDBACK_PATH = "", DELAY_ADJUSTMENT_MODE_FEEDBACK = "",
    DELAY_ADJUSTMENT_MODE_RELATIVE = "", PLLOUT_SELECT = "", SHIFTREG_DIV_MODE = 0, FDA_FEEDBACK = 0,
    FDA_RELATIVE = 0, DIVR = 0, DIVF = 0, DIVQ = 0, FILTER_RANGE = 0, ENABLE_ICEGATE = 0, TEST_MODE = 0
) (
    input REFERENCECLK, EXTFEEDBACK, input [7:0] DYNAMICDELAY, input BYPASS, RESETB, LATCHINPUTVALUE,
    input SDI, SCLK, output PLLOUTCORE, PLLOUTGLOBAL, LOCK, SDO
);
    wire locked;
    lock_after lock_after (.clk(REFERENCECLK), .locked(locked));
    assign PLLOUTCORE = REFERENCECLK, PLLOUTGLOBAL = REFERENCECLK, LOCK = locked && RESETB && !BYPASS;
endmodule
