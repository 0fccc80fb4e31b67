// A memory with one write and one read port, as in amaranth.lib.memory.Memory: reads see a write
// from the next cycle on, and read data stay until the next enabled read. The simulator chooses the
// initial contents.
module large_memory #(
    parameter WIDTH = 8, parameter DEPTH = 2, parameter ADDRESS = 1, parameter GRANULE = 8
) (
    input clk,
    input [ADDRESS-1:0] write_addr,
    input [WIDTH-1:0] write_data,
    input [WIDTH/GRANULE-1:0] write_en,
    input [ADDRESS-1:0] read_addr,
    input read_en,
    output reg [WIDTH-1:0] read_data
);
    reg [WIDTH-1:0] rows [0:DEPTH-1];
    integer i;
    always @(posedge clk) begin
        for (i = 0; i < WIDTH / GRANULE; i = i + 1)
            if (write_en[i])
                rows[write_addr][i*GRANULE +: GRANULE] <= write_data[i*GRANULE +: GRANULE];
        if (read_en)
            read_data <= rows[read_addr];
    end
endmodule
