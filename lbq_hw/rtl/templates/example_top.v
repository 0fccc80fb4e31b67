// {{ name }} without a host: pixels come from a camera, and the class of each input goes out.
//
// The bus has no master here. To use one, connect it in place of the constants below.

module example_top(
    input wire clk,
    input wire rst_n,
    // A pixel per cycle with pixel_valid and pixel_ready; pixel_first marks the first of an input.
    input wire pixel_valid,
    output wire pixel_ready,
    input wire pixel_first,
    input wire [{{ tdata_bits - 1 }}:0] pixel,
{% if external %}
    // The memory that holds tape.bin: words of {{ external }} bits, answered in the order of the addresses.
    input wire memory_works,
    output wire address_valid,
    input wire address_ready,
    output wire [31:0] address,
    input wire word_valid,
    input wire [{{ external - 1 }}:0] word,
{% endif %}
    // One cycle for each input.
    output reg class_valid,
    output reg [15:0] class_number,
    output wire failed
);
    reg [1:0] reset = 2'b11;
    always @(posedge clk or negedge rst_n)
        if (!rst_n) reset <= 2'b11;
        else reset <= {1'b0, reset[1]};

    wire logit_valid, logit_last;
    wire [31:0] logit_data;

    {{ module }} core(
        .clk(clk),
        .rst(reset[0]),
        .s_axis_pixel_tvalid(pixel_valid),
        .s_axis_pixel_tready(pixel_ready),
        .s_axis_pixel_tdata(pixel),
        .s_axis_pixel_tuser(pixel_first),
        .m_axis_logit_tvalid(logit_valid),
        .m_axis_logit_tready(1'b1),
        .m_axis_logit_tdata(logit_data),
        .m_axis_logit_tlast(logit_last),
{% if external %}
        .tape_works(memory_works),
        .m_axis_tape_address_tvalid(address_valid),
        .m_axis_tape_address_tready(address_ready),
        .m_axis_tape_address_tdata(address),
        .s_axis_tape_word_tvalid(word_valid),
        .s_axis_tape_word_tready(),
        .s_axis_tape_word_tdata(word),
{% endif %}
{% if bus == "axi4lite" %}
        .s_axi_awaddr({{ address_bits }}'d0), .s_axi_awprot(3'd0), .s_axi_awvalid(1'b0), .s_axi_awready(),
        .s_axi_wdata(32'd0), .s_axi_wstrb(4'd0), .s_axi_wvalid(1'b0), .s_axi_wready(),
        .s_axi_bresp(), .s_axi_bvalid(), .s_axi_bready(1'b1),
        .s_axi_araddr({{ address_bits }}'d0), .s_axi_arprot(3'd0), .s_axi_arvalid(1'b0), .s_axi_arready(),
        .s_axi_rdata(), .s_axi_rresp(), .s_axi_rvalid(), .s_axi_rready(1'b1),
{% elif bus == "wishbone" %}
        .wb_cyc(1'b0), .wb_stb(1'b0), .wb_we(1'b0), .wb_adr({{ address_bits - 2 }}'d0), .wb_sel(4'd0),
        .wb_dat_w(32'd0), .wb_dat_r(), .wb_ack(), .wb_err(),
{% else %}
        .bus_valid(1'b0), .bus_write(1'b0), .bus_addr({{ address_bits - 2 }}'d0), .bus_w_data(32'd0),
        .bus_ack(), .bus_r_data(), .bus_refused(),
{% endif %}
        .irq(),
        .busy(),
        .failed(failed)
    );

    // The largest logit; on a tie, the first.
{% if logit_slices == 1 %}
    wire whole = logit_valid;
    wire signed [31:0] logit = $signed(logit_data);
    reg signed [31:0] best;
{% else %}
    // A logit comes as two words, the lower one first.
    reg upper = 1'b0;
    reg [31:0] lower;
    always @(posedge clk)
        if (reset[0]) upper <= 1'b0;
        else if (logit_valid) begin
            upper <= !upper;
            lower <= logit_data;
        end
    wire whole = logit_valid && upper;
    wire signed [63:0] logit = $signed({logit_data, lower});
    reg signed [63:0] best;
{% endif %}
    reg first;
    reg [15:0] number, best_number;
    wire better = first || logit > best;
    always @(posedge clk) begin
        class_valid <= whole && logit_last;
        class_number <= better ? number : best_number;
        if (reset[0] || (whole && logit_last)) begin
            first <= 1'b1;
            number <= 16'd0;
        end else if (whole) begin
            first <= 1'b0;
            number <= number + 16'd1;
        end
        if (whole && better) begin
            best <= logit;
            best_number <= number;
        end
    end
endmodule
