// Behaviour of the iCE40 UltraPlus single-port RAM, as far as it is used: one port, a write enable
// a nibble, what is read stays until the next access, and a write leaves the output undefined.
module SB_SPRAM256KA (
    input [13:0] ADDRESS,
    input [15:0] DATAIN,
    input [3:0] MASKWREN,
    input WREN, CHIPSELECT, CLOCK, STANDBY, SLEEP, POWEROFF,
    output reg [15:0] DATAOUT
);
    reg [15:0] rows [0:16383];
    integer nibble;

    always @(posedge CLOCK)
        if (STANDBY || SLEEP || !POWEROFF)
            DATAOUT <= 16'bx;
        else if (CHIPSELECT && WREN) begin
            for (nibble = 0; nibble < 4; nibble = nibble + 1)
                if (MASKWREN[nibble])
                    rows[ADDRESS][4 * nibble +: 4] <= DATAIN[4 * nibble +: 4];
            DATAOUT <= 16'bx;
        end else if (CHIPSELECT)
            DATAOUT <= rows[ADDRESS];
endmodule
