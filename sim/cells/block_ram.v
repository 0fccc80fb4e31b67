    // Functions of a block RAM of 2,048 x 9 bits, which the models of two families include.

    function [10:0] begins(input [13:0] address, input integer width);
        case (width)
            36: begins = {address[13:5], 2'b0};
            18: begins = {address[13:4], 1'b0};
            default: begins = address[13:3];
        endcase
    endfunction

    function [35:0] look(input [13:0] address, input integer width, input [35:0] all);
        case (width)
            36: look = all;
            18: look = all[17:0];
            9: look = all[8:0];
            4: look = all[address[2] * 4 +: 4];
            2: look = all[address[2:1] * 2 +: 2];
            default: look = all[address[2:0]];
        endcase
    endfunction

    function [8:0] put(input [13:0] address, input integer width, input [8:0] data, input [8:0] old);
        begin
            put = old;
            case (width)
                36, 18, 9: put = data;
                4: put[address[2] * 4 +: 4] = data[3:0];
                2: put[address[2:1] * 2 +: 2] = data[1:0];
                default: put[address[2:0]] = data[0];
            endcase
        end
    endfunction

    function [3:0] enables(input [13:0] address, input integer width);
        case (width)
            36: enables = address[3:0];
            18: enables = {2'b0, address[1:0]};
            default: enables = 4'b1;
        endcase
    endfunction

    function [2:0] size(input integer width);
        size = width == 36 ? 4 : width == 18 ? 2 : 1;
    endfunction
