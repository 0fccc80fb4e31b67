// Drives an external memory at simulated pins by a script of lines "OP X Y", and prints what comes:
//
//   0 X    wait X cycles                 3 X    run: start, take X words, stop
//   1 X Y  write Y to slice X            4 X    self-test up to slice X
//   2 X    read slice X                  5 X    take words at once in about X of 256 cases
//   6      calibrate again
//
// "ready CYCLE CAPTURE PASSED", "wrote CYCLE", "slice CYCLE DATA", "start CYCLE", "word CYCLE DATA EARLIEST"
// with the cycle from which on the word would have been taken, "stop CYCLE", "differing N", "failed".
module bench #(parameter DATA_BITS = 16);
    reg clk = 0, rst = 1;
    reg request_valid = 0, test_start = 0, running = 0, starting = 0, calibrate = 0;
    reg request_write = 0;
    reg [23:0] address = 0;
    reg [31:0] data = 0;
    wire request_ready, answer_valid, words_valid, aligned, calibrated, failed, test_busy, violated;
    wire [31:0] answer, differing;
    wire [DATA_BITS-1:0] word;
    wire [3:0] capture;
    wire [19:0] captures;
    integer cycle = 0, script, op, x, y, got, rate = 256, seed, left = 0, limit, earliest = 0;
    reg [8*256-1:0] name;
    reg active = 0;
    wire start = starting && aligned;
    wire reads = running && left > 0;
    wire ready = !reads || cycle >= earliest;

    memory dut(
        .clk(clk), .rst(rst),
        .tape__calibrated(calibrated), .tape__aligned(aligned), .tape__start(start),
        .tape__stop(!start && !reads), .tape__words__valid(words_valid),
        .tape__words__ready(ready), .tape__words__payload(word),
        .host__request__valid(request_valid), .host__request__ready(request_ready),
        .host__request__payload({data, address, request_write}),
        .host__answer__valid(answer_valid), .host__answer__payload(answer),
        .host__failed(failed), .host__test_start(test_start), .host__test_last(address),
        .host__test_busy(test_busy), .host__test_differing(differing),
        .host__captures(captures), .host__calibrate(calibrate),
        .capture(capture), .reload(1'b0), .violated(violated)
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
                0: left <= x;
                1: begin request_valid <= 1; request_write <= 1; address <= x; data <= y; end
                2: begin request_valid <= 1; request_write <= 0; address <= x; end
                3: begin starting <= 1; left <= x; end
                4: begin test_start <= 1; address <= x; end
                6: begin calibrate <= 1; active <= 0; end
                default: rate <= x;
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
        test_start <= 0;
        calibrate <= 0;
        if (start) begin
            $display("start %0d", cycle);
            starting <= 0;
            running <= 1;
            earliest <= cycle + 1;
        end
        if (reads && words_valid && ready) begin
            $display("word %0d %h %0d", cycle, word, earliest);
            left <= left - 1;
            if (($random(seed) & 255) < rate) earliest <= cycle + 1;
            else earliest <= cycle + 1 + ({$random(seed)} % (({$random(seed)} & 7) == 0 ? 900 : 20));
            if (left == 1) begin $display("stop %0d", cycle); running <= 0; end
        end
        if (request_valid && request_ready) begin
            request_valid <= 0;
            if (request_write) $display("wrote %0d", cycle);
        end
        if (answer_valid) $display("slice %0d %h", cycle, answer);
        if (failed) begin $display("failed"); $finish; end
        if (cycle == limit) begin $display("late"); $finish; end
        if (calibrated && !active && !rst && !calibrate) begin
            $display("ready %0d %0d %0d", cycle, capture, captures[15:0]);
            active <= 1;
            next;
        end
        if (active) case (op)
            0: if (left <= 1) next; else left <= left - 1;
            1: if (request_valid && request_ready) next;
            2: if (answer_valid) next;
            3: if (running && (left == 0 || (left == 1 && words_valid && ready))) next;
            4: if (!test_start && !test_busy) begin $display("differing %0d", differing); next; end
            default: next;
        endcase
    end
endmodule
