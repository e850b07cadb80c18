// Tile programs as bytes (regie/c/tile.h) and as text (docs/tile.md). Reading trusts nothing: every violation
// is sdk::Failure, CORRUPT for bytes and INVALID_INPUT with the line for text.
#pragma once

#include <string>
#include <string_view>

#include "regie/tile/program.h"

namespace regie::tile {

// Throws INVALID_INPUT if the program breaks the form (see `check_form`).
std::string encode(const Program& program);
// `decode(encode(p)) == p`, and `encode(decode(b)) == b` for every b that is accepted.
Program decode(std::string_view bytes);

// `assemble(disassemble(p)) == p`.
std::string disassemble(const Program& program);
// `file` names the text in messages.
Program assemble(std::string_view text, std::string_view file = "program");
std::string instruction_text(const Instruction& instruction);
std::string expr_text(const Expr& expr);

// The form alone: known instructions and modes, variables within their loops, loops closed, numbers within
// REGIE_TILE_NUMBER_LIMIT, counts within the limits of regie/c/tile.h. Gives what is wrong, or an empty text.
std::string check_form(const Program& program);

}  // namespace regie::tile
