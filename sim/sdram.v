// An SDR SDRAM at its pins, which ends the simulation at the first violation of the data sheet.
//
// A violation ends the simulation with one line, and sets `violated`:
//
//   sdram: tRCD violated in bank 2 at 123456 ps
//
// Every row must be refreshed once per (number of rows * `REFRESH`), from power-up on; single
// refreshes may be late.
//
// Names of checks: tRCD, tRP, tRAS, tRC, tRFC, tRRD, tWR, tMRD; refresh interval; power-up wait,
// power-up order; CAS latency, mode register; bank open, bank closed (the state that the command
// does not allow); bus turnaround (both sides drive), write data (no side drives); auto precharge,
// clock enable, unknown command.
//
// Time is counted in periods of the clock, which must have a duty cycle of one half. The outputs
// have the values that the other side samples at the end of each half period: a word is valid from
// `access` ps after the edge that launches it until `hold` ps after the next edge, and inverted
// otherwise. Both times include the delays of the board and of the other side's pads. Without a
// requested word, the outputs are the last word, inverted. This needs no delays in the simulator.
//
// +sdram_access=PS and +sdram_hold=PS replace the parameters. +sdram_drift=PS moves both later
// (earlier, if it is negative), evenly from edge +sdram_drift_begin=N to edge +sdram_drift_end=N.
// +sdram_file=NAME fills the memory from a file of words, highest byte first, in the order of
// column, bank, row. The file is read again at an edge with `reload`.
module sdram #(
    parameter DATA_BITS = 16, parameter ROW_BITS = 13, parameter COLUMN_BITS = 9,
    parameter BANK_BITS = 2, parameter PIN_BITS = 13,
    parameter PERIOD = 12500,
    parameter RCD = 21000, parameter RP = 21000, parameter RAS = 45000, parameter RC = 67500,
    parameter RFC = 70000, parameter RRD = 15000, parameter WR = 15000, parameter MRD = 15000,
    parameter REFRESH = 7812500, parameter POWER_UP = 200000000,
    parameter PERIOD_2 = 10000, parameter PERIOD_3 = 7500,
    parameter ACCESS = 6500, parameter HOLD = 2500, parameter RELEASE = 6500
) (
    input clk,
    input cke,
    input cs_n,
    input ras_n,
    input cas_n,
    input we_n,
    input [BANK_BITS-1:0] ba,
    input [PIN_BITS-1:0] a,
    input [DATA_BITS/8-1:0] dqm,
    input [DATA_BITS-1:0] dq_i,
    input dq_driven,
    input reload,
    output reg [DATA_BITS-1:0] dq_o,
    output reg violated
);
    localparam BANKS = 1 << BANK_BITS;
    localparam ROWS = 1 << ROW_BITS;
    localparam [63:0] ROWS_64 = ROWS, REFRESH_64 = REFRESH, PERIOD_64 = PERIOD;
    localparam [63:0] RETENTION = ROWS_64 * REFRESH_64 / PERIOD_64;  // edges
    localparam WORDS = 1 << (ROW_BITS + BANK_BITS + COLUMN_BITS);
    localparam [2:0] NONE = 3'b000, ACTIVATE = 3'b001, READ = 3'b010, AUTO_REFRESH = 3'b011,
                     TERMINATE = 3'b100, PRECHARGE = 3'b101, WRITE = 3'b110, MODE = 3'b111;
    localparam KEPT = 4;  // most launched words that are kept
    localparam FIRST_REFRESHES = 2;

    reg [DATA_BITS-1:0] words [0:WORDS-1];

    // Numbers of edges; 0 is never, since the first edge is number 1.
    reg [63:0] edges;
    reg [63:0] activated [0:BANKS-1];
    reg [63:0] precharged [0:BANKS-1];
    reg [63:0] wrote [0:BANKS-1];
    reg [63:0] refreshed, moded, any_activated;
    reg [63:0] row_refreshed [0:ROWS-1];
    reg [63:0] deadline;  // edge by which the next row must be refreshed; 0 for none
    reg [ROW_BITS-1:0] next_row;
    reg [BANKS-1:0] open;
    reg [ROW_BITS-1:0] row [0:BANKS-1];
    reg was_enabled, was_precharged, ready;
    integer first_refreshes;

    integer cas, length;
    reg bursting;
    integer left;
    reg [BANK_BITS-1:0] burst_bank;
    reg [COLUMN_BITS-1:0] column;

    // Words that were requested, and words that were launched, the newest first.
    reg asked_0, asked_1;
    reg [DATA_BITS-1:0] asked_word_0, asked_word_1;
    reg masked;
    reg [KEPT-1:0] launched;
    reg [DATA_BITS-1:0] launched_word [0:KEPT-1];
    reg [DATA_BITS-1:0] last;

    integer access, hold, period;  // signed, as a parameter need not be
    integer drift, drifted;  // at the end, and so far
    reg [63:0] drift_begin, drift_end;
    integer at_rise, at_fall;  // which launched word is right at the next such edge; KEPT for none
    integer i, file, got;
    reg [8*256-1:0] name;
    reg [2:0] command;
    reg [DATA_BITS-1:0] word;
    reg found;

    task fail(input [8*24-1:0] check, input integer bank);
        if (!violated) begin
            violated = 1;
            if (bank < 0)
                $display("sdram: %0s violated in all banks at %0d ps", check, edges * PERIOD);
            else
                $display("sdram: %0s violated in bank %0d at %0d ps", check, bank, edges * PERIOD);
            $finish;
        end
    endtask

    // Whether less than `least` ps have passed since an edge.
    function early(input [63:0] since, input [63:0] least);
        early = since != 0 && (edges - since) * PERIOD < least;
    endfunction

    initial begin
        edges = 0;
        refreshed = 0;
        moded = 0;
        any_activated = 0;
        next_row = 0;
        deadline = 0;
        open = 0;
        was_enabled = 0;
        was_precharged = 0;
        ready = 0;
        first_refreshes = 0;
        bursting = 0;
        asked_0 = 0;
        asked_1 = 0;
        masked = 0;
        launched = 0;
        last = 0;
        cas = 2;
        length = 1;
        left = 0;
        dq_o = 0;
        violated = 0;
        for (i = 0; i < BANKS; i = i + 1) begin
            activated[i] = 0;
            precharged[i] = 0;
            wrote[i] = 0;
        end
        for (i = 0; i < KEPT; i = i + 1) launched_word[i] = 0;
        access = ACCESS;
        hold = HOLD;
        got = $value$plusargs("sdram_access=%d", access);
        got = $value$plusargs("sdram_hold=%d", hold);
        period = PERIOD;
        drift = 0;
        drifted = 0;
        drift_begin = 0;
        drift_end = 0;
        got = $value$plusargs("sdram_drift=%d", drift);
        got = $value$plusargs("sdram_drift_begin=%d", drift_begin);
        got = $value$plusargs("sdram_drift_end=%d", drift_end);
        if (hold >= access || 2 * access > 2 * KEPT * PERIOD) begin
            $display("sdram: access must be more than hold and at most %0d ps", KEPT * PERIOD);
            $finish;
        end
        aim;
        fill;
    end

    // A word launched i rising edges ago is 2 i + 1 half periods old at the next falling edge, and
    // 2 i + 2 at the next rising one.
    task aim;
        begin
            at_rise = KEPT;
            at_fall = KEPT;
            for (i = 0; i < KEPT; i = i + 1) begin
                if (2 * (access + drifted) <= (2 * i + 1) * period
                    && 2 * i * period <= 2 * (hold + drifted) + period) at_fall = i;
                if (2 * (access + drifted) <= (2 * i + 2) * period
                    && 2 * i * period <= 2 * (hold + drifted)) at_rise = i;
            end
        end
    endtask

    task wander;
        begin
            if (edges >= drift_end) drifted = drift;
            else if (edges > drift_begin)
                drifted = drift * $signed(edges - drift_begin) / $signed(drift_end - drift_begin);
            aim;
        end
    endtask

    task fill;
        if ($value$plusargs("sdram_file=%s", name)) begin
            file = $fopen(name, "rb");
            if (file == 0) begin
                $display("sdram: %0s cannot be read", name);
                $finish;
            end else begin
                got = $fread(words, file);
                $fclose(file);
            end
        end
    endtask

    task show(input integer index);
        if (index < KEPT && launched[index]) begin
            last = launched_word[index];
            dq_o <= last;
        end else begin
            dq_o <= ~last;
        end
    endtask

    task close(input integer bank);
        begin
            if (open[bank] && early(activated[bank], RAS)) fail("tRAS", bank);
            if (open[bank] && early(wrote[bank], WR)) fail("tWR", bank);
            if (open[bank]) precharged[bank] = edges;
            open[bank] = 0;
            if (bursting && burst_bank == bank) bursting = 0;
        end
    endtask

    task must_be_closed;
        for (i = 0; i < BANKS; i = i + 1) begin
            if (open[i]) fail("bank open", i);
            if (early(precharged[i], RP)) fail("tRP", i);
        end
    endtask

    task set_mode;
        begin
            must_be_closed;
            if (!was_precharged) fail("power-up order", -1);
            moded = edges;
            cas = a[6:4];
            length = a[2:0] == 7 ? 1 << COLUMN_BITS : 1 << a[2:0];
            if (a[2:0] > 3 && a[2:0] < 7) fail("mode register", -1);
            if (a[3] || a[8:7] != 0 || a[PIN_BITS-1:10] != 0 || ba != 0) fail("mode register", -1);
            if (!a[9]) fail("mode register", -1);  // only single writes are modelled
            if (cas != 2 && cas != 3) fail("CAS latency", -1);
            if (PERIOD < (cas == 2 ? PERIOD_2 : PERIOD_3)) fail("CAS latency", -1);
        end
    endtask

    task activate;
        begin
            if (!ready) fail("power-up order", ba);
            if (open[ba]) fail("bank open", ba);
            if (early(precharged[ba], RP)) fail("tRP", ba);
            if (early(activated[ba], RC)) fail("tRC", ba);
            if (early(any_activated, RRD)) fail("tRRD", ba);
            open[ba] = 1;
            row[ba] = a[ROW_BITS-1:0];
            activated[ba] = edges;
            any_activated = edges;
        end
    endtask

    task start;
        begin
            if (!open[ba]) fail("bank closed", ba);
            if (early(activated[ba], RCD)) fail("tRCD", ba);
            if (a[10]) fail("auto precharge", ba);
            bursting = 0;
        end
    endtask

    task store;
        begin
            start;
            if (!dq_driven) fail("write data", ba);
            word = words[{row[ba], ba, a[COLUMN_BITS-1:0]}];
            for (i = 0; i < DATA_BITS / 8; i = i + 1)
                if (!dqm[i]) word[i*8 +: 8] = dq_i[i*8 +: 8];
            words[{row[ba], ba, a[COLUMN_BITS-1:0]}] = word;
            wrote[ba] = edges;
        end
    endtask

    task refresh;
        begin
            must_be_closed;
            if (!was_precharged) fail("power-up order", -1);
            refreshed = edges;
            row_refreshed[next_row] = edges;
            next_row = next_row + 1;
            deadline = row_refreshed[next_row] + RETENTION;
            if (first_refreshes < FIRST_REFRESHES) first_refreshes = first_refreshes + 1;
        end
    endtask

    task obey;
        begin
            if (!was_enabled || edges * PERIOD < POWER_UP) fail("power-up wait", -1);
            if (early(refreshed, RFC)) fail("tRFC", -1);
            if (early(moded, MRD)) fail("tMRD", -1);
            case (command)
                MODE: set_mode;
                AUTO_REFRESH: refresh;
                ACTIVATE: activate;
                PRECHARGE: begin
                    for (i = 0; i < BANKS; i = i + 1) if (a[10] || ba == i) close(i);
                    if (a[10]) was_precharged = 1;
                    // Before that, the banks are in any state: the first precharge counts for all.
                    if (!ready && a[10]) for (i = 0; i < BANKS; i = i + 1) precharged[i] = edges;
                end
                READ: begin
                    start;
                    bursting = 1;
                    burst_bank = ba;
                    column = a[COLUMN_BITS-1:0];
                    left = length;
                end
                WRITE: store;
                TERMINATE: bursting = 0;
                default: ;
            endcase
            if (!ready && moded != 0 && first_refreshes == FIRST_REFRESHES) begin
                ready = 1;
                for (i = 0; i < ROWS; i = i + 1) row_refreshed[i] = edges;
                deadline = edges + RETENTION;
            end
        end
    endtask

    task rise;
        begin
            edges = edges + 1;
            if (drift != drifted) wander;
            if (reload === 1) fill;
            // The previous word stays on the pins until RELEASE after this edge.
            if (launched[0] && dq_driven) fail("bus turnaround", burst_bank);
            if (was_enabled && cke !== 1) fail("clock enable", -1);
            command = {~we_n, ~cas_n, ~ras_n};
            if (cke === 1 && ^{cs_n, ras_n, cas_n, we_n} === 1'bx) fail("unknown command", -1);
            if (cke === 1 && !cs_n && command != NONE) obey;
            was_enabled = cke === 1;
            if (ready && edges > deadline) fail("refresh interval", -1);

            // Words are launched cas - 1 edges after their request.
            for (i = KEPT - 1; i > 0; i = i - 1) launched_word[i] = launched_word[i-1];
            launched_word[0] = cas == 2 ? asked_word_0 : asked_word_1;
            found = (cas == 2 ? asked_0 : asked_1) && !masked;
            launched = {launched[KEPT-2:0], found};
            asked_1 = asked_0;
            asked_word_1 = asked_word_0;
            asked_0 = bursting;
            if (bursting) begin
                asked_word_0 = words[{row[burst_bank], burst_bank, column}];
                column = column + 1;
                left = left - 1;
                if (left == 0) begin
                    // A full-page burst wraps around.
                    if (length == 1 << COLUMN_BITS) left = length;
                    else bursting = 0;
                end
            end
            masked = dqm != 0;  // masks the word that the next edge launches
            show(at_fall);
        end
    endtask

    task fall;
        begin
            if (dq_driven && (launched[0] || (launched[1] && 2 * RELEASE > PERIOD)))
                fail("bus turnaround", burst_bank);
            show(at_rise);
        end
    endtask

    always @(posedge clk or negedge clk)
        if (clk) rise;
        else fall;
endmodule
