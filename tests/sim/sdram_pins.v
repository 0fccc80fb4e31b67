// Drives the model of an SDRAM cycle by cycle from a script of lines "COMMAND BANK ADDRESS DATA", where
// COMMAND is the row strobe, column strobe and write enable asserted in bits 0 to 2, 8 for a clock
// that is not enabled, 16 for data pins that are driven, 32 for masks, 64 for a row strobe of no known
// level, 128 to read the memory's file again; prints the data pins as they are before each rising and
// each falling edge.
module pins #(
    parameter PERIOD = 10000, parameter PERIOD_2 = 10000, parameter DATA_BITS = 16,
    parameter RCD = 20000, parameter RP = 20000, parameter RAS = 50000, parameter RC = 80000,
    parameter RFC = 60000, parameter RRD = 30000, parameter WR = 20000, parameter MRD = 20000
);
    reg clk = 0;
    reg [7:0] command = 8;
    reg [1:0] ba = 0;
    reg [10:0] a = 0;
    reg [DATA_BITS-1:0] data = 0;
    wire [DATA_BITS-1:0] dq;
    wire violated;
    integer script, got;
    reg [8*256-1:0] name;

    sdram #(
        .DATA_BITS(DATA_BITS), .ROW_BITS(4), .COLUMN_BITS(4), .PIN_BITS(11), .PERIOD(PERIOD),
        .PERIOD_2(PERIOD_2), .PERIOD_3(10000), .RCD(RCD), .RP(RP), .RAS(RAS), .RC(RC), .RFC(RFC),
        .RRD(RRD), .WR(WR), .MRD(MRD), .REFRESH(2000000), .POWER_UP(100000)
    ) model(
        .clk(clk), .cke(~command[3]), .cs_n(1'b0), .ras_n(command[6] ? 1'bx : ~command[0]), .cas_n(~command[1]),
        .we_n(~command[2]), .ba(ba), .a(a), .dqm({DATA_BITS / 8{command[5]}}), .dq_i(data),
        .dq_driven(command[4]), .reload(command[7]), .dq_o(dq), .violated(violated)
    );

    initial begin
        got = $value$plusargs("script=%s", name);
        script = $fopen(name, "r");
        while ($fscanf(script, "%d %d %h %h\n", command, ba, a, data) == 4) begin
            #1 $display("rise %h", dq);
            clk = 1;
            #1 $display("fall %h", dq);
            clk = 0;
        end
        $finish;
    end
endmodule
