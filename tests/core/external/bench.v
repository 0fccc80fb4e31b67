// Drives an external memory at simulated pins by a script of lines "OP X Y", and prints what comes:
//
//   0 X    wait X cycles                 4 X    test the memory up to address X, print "differing"
//   1 X Y  write Y at address X          5      flush, until the memory is idle
//   2 X Y  read Y + 1 words from X on    6 X    take words in about X of 256 cycles
//   3      wait until all words have come
//
// "ready CYCLE CAPTURE", "wrote CYCLE", "asked CYCLE", "word CYCLE DATA", "failed", "differing N".
module bench #(parameter ADDRESS_BITS = 24, parameter DATA_BITS = 16);
    reg clk = 0, rst = 1;
    reg read_valid = 0, write_valid = 0, words_ready = 0, flush = 0, test_start = 0;
    reg [ADDRESS_BITS-1:0] address = 0, more = 0;
    reg [DATA_BITS-1:0] data = 0;
    wire read_ready, write_ready, words_valid, idle, ready, failed, test_busy, violated;
    wire [DATA_BITS-1:0] words_payload;
    wire [ADDRESS_BITS+1:0] differing;
    wire [3:0] capture;
    integer cycle = 0, script, op, x, y, got, rate = 256, seed, waiting = 0, limit;
    reg [8*256-1:0] name;
    reg active = 0;

    memory dut(
        .clk(clk), .rst(rst),
        .port__read__valid(read_valid), .port__read__ready(read_ready),
        .port__read__payload({more, address}),
        .port__write__valid(write_valid), .port__write__ready(write_ready),
        .port__write__payload({data, address}),
        .port__words__valid(words_valid), .port__words__ready(words_ready),
        .port__words__payload(words_payload),
        .flush(flush), .idle(idle), .ready(ready), .failed(failed), .capture(capture),
        .test_start(test_start), .test_last(address), .test_busy(test_busy),
        .differing(differing), .violated(violated)
    );

    always #1 clk = ~clk;

    task next;
        begin
            got = $fscanf(script, "%d %h %h\n", op, x, y);
            if (got != 3) begin
                $display("cycles %0d", cycle);
                $finish;
            end
            case (op)
                0: waiting <= x;
                1: begin write_valid <= 1; address <= x; data <= y; end
                2: begin read_valid <= 1; address <= x; more <= y; end
                4: begin test_start <= 1; address <= x; end
                5: flush <= 1;
                6: rate <= x;
                default: ;
            endcase
        end
    endtask

    initial begin
        if (!$value$plusargs("script=%s", name)) $finish;
        script = $fopen(name, "r");
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("limit=%d", limit)) limit = 1000000;
    end

    always @(posedge clk) begin
        cycle <= cycle + 1;
        rst <= cycle < 2;
        words_ready <= ($random(seed) & 255) < rate;
        test_start <= 0;
        if (words_valid && words_ready) $display("word %0d %h", cycle, words_payload);
        if (read_valid && read_ready) begin $display("asked %0d", cycle); read_valid <= 0; end
        if (write_valid && write_ready) begin $display("wrote %0d", cycle); write_valid <= 0; end
        if (flush && idle) begin $display("flushed %0d", cycle); flush <= 0; end
        if (failed) begin $display("failed"); $finish; end
        if (cycle == limit) begin $display("late"); $finish; end
        if (ready && !active && !rst) begin
            $display("ready %0d %0d", cycle, capture);
            active <= 1;
            next;
        end
        if (active) case (op)
            0: if (waiting <= 1) next; else waiting <= waiting - 1;
            1: if (write_valid && write_ready) next;
            2: if (read_valid && read_ready) next;
            3: if (idle) next;
            4: if (!test_start && !test_busy) begin $display("differing %0d", differing); next; end
            5: if (flush && idle) next;
            default: next;
        endcase
    end
endmodule
