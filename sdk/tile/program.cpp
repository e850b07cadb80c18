#include "regie/tile/program.h"

namespace regie::tile {

namespace {

constexpr ArgInfo kTrips[] = {{"trips", ArgKind::count, true, 0}};
constexpr ArgInfo kFlag[] = {{"id", ArgKind::number, true, 0}};

constexpr ArgInfo kCopy[] = {{"to", ArgKind::address, true, 0},    {"from", ArgKind::address, true, 0},
                             {"bytes", ArgKind::count, true, 0},   {"n1", ArgKind::count, false, 1},
                             {"to1", ArgKind::stride, false, 0},   {"from1", ArgKind::stride, false, 0},
                             {"n2", ArgKind::count, false, 1},     {"to2", ArgKind::stride, false, 0},
                             {"from2", ArgKind::stride, false, 0}, {"n3", ArgKind::count, false, 1},
                             {"to3", ArgKind::stride, false, 0},   {"from3", ArgKind::stride, false, 0}};
constexpr ArgInfo kFill[] = {{"to", ArgKind::address, true, 0},
                             {"value", ArgKind::scalar, true, 0},
                             {"n", ArgKind::count, true, 0},
                             {"n1", ArgKind::count, false, 1},
                             {"to1", ArgKind::stride, false, 0}};
constexpr ArgInfo kFractal[] = {{"to", ArgKind::address, true, 0},    {"from", ArgKind::address, true, 0},
                                {"n1", ArgKind::count, false, 1},     {"to1", ArgKind::stride, false, 0},
                                {"from1", ArgKind::stride, false, 0}, {"n2", ArgKind::count, false, 1},
                                {"to2", ArgKind::stride, false, 0},   {"from2", ArgKind::stride, false, 0}};
constexpr ArgInfo kIm2col[] = {
    {"to", ArgKind::address, true, 0},        {"from", ArgKind::address, true, 0},
    {"height", ArgKind::count, true, 0},      {"width", ArgKind::count, true, 0},
    {"top", ArgKind::number, false, 0},       {"left", ArgKind::number, false, 0},
    {"stride_h", ArgKind::count, false, 1},   {"stride_w", ArgKind::count, false, 1},
    {"dilation_h", ArgKind::count, false, 1}, {"dilation_w", ArgKind::count, false, 1},
    {"kernel_h", ArgKind::count, false, 1},   {"kernel_w", ArgKind::count, false, 1},
    {"out_width", ArgKind::count, true, 0},   {"first", ArgKind::count, false, 0},
    {"rows", ArgKind::count, true, 0},        {"first_k", ArgKind::count, false, 0},
    {"k1", ArgKind::count, true, 0},          {"plane", ArgKind::stride, false, 0},
    {"to1", ArgKind::stride, false, 0},       {"pad", ArgKind::number, false, 0}};
constexpr ArgInfo kMmad[] = {{"to", ArgKind::address, true, 0},      {"a", ArgKind::address, true, 0},
                             {"b", ArgKind::address, true, 0},       {"m", ArgKind::count, true, 0},
                             {"n", ArgKind::count, true, 0},         {"k", ArgKind::count, true, 0},
                             {"accumulate", ArgKind::flag, true, 0}, {"to1", ArgKind::stride, false, 0},
                             {"a1", ArgKind::stride, false, 0},      {"b1", ArgKind::stride, false, 0}};
constexpr ArgInfo kDrain[] = {{"to", ArgKind::address, true, 0},  {"from", ArgKind::address, true, 0},
                              {"rows", ArgKind::count, true, 0},  {"n1", ArgKind::count, false, 1},
                              {"to1", ArgKind::stride, false, 0}, {"from1", ArgKind::stride, false, 0}};
constexpr ArgInfo kRequant[] = {
    {"to", ArgKind::address, true, 0},      {"from", ArgKind::address, true, 0},
    {"factor", ArgKind::address, true, 0},  {"addend", ArgKind::address, false, 0},
    {"added", ArgKind::flag, false, 0},     {"relu", ArgKind::flag, false, 0},
    {"offset", ArgKind::number, false, 0},  {"rows", ArgKind::count, true, 0},
    {"row", ArgKind::stride, true, 0},      {"n1", ArgKind::count, false, 1},
    {"to1", ArgKind::stride, false, 0},     {"from1", ArgKind::stride, false, 0},
    {"factor1", ArgKind::stride, false, 0}, {"addend1", ArgKind::stride, false, 0},
    {"n2", ArgKind::count, false, 1},       {"to2", ArgKind::stride, false, 0},
    {"from2", ArgKind::stride, false, 0},   {"factor2", ArgKind::stride, false, 0},
    {"addend2", ArgKind::stride, false, 0}};
constexpr ArgInfo kTwo[] = {
    {"to", ArgKind::address, true, 0},  {"a", ArgKind::address, true, 0},  {"b", ArgKind::address, true, 0},
    {"n", ArgKind::count, true, 0},     {"n1", ArgKind::count, false, 1},  {"to1", ArgKind::stride, false, 0},
    {"a1", ArgKind::stride, false, 0},  {"b1", ArgKind::stride, false, 0}, {"n2", ArgKind::count, false, 1},
    {"to2", ArgKind::stride, false, 0}, {"a2", ArgKind::stride, false, 0}, {"b2", ArgKind::stride, false, 0}};
constexpr ArgInfo kOne[] = {
    {"to", ArgKind::address, true, 0}, {"a", ArgKind::address, true, 0},   {"n", ArgKind::count, true, 0},
    {"n1", ArgKind::count, false, 1},  {"to1", ArgKind::stride, false, 0}, {"a1", ArgKind::stride, false, 0},
    {"n2", ArgKind::count, false, 1},  {"to2", ArgKind::stride, false, 0}, {"a2", ArgKind::stride, false, 0}};
constexpr ArgInfo kSelect[] = {{"to", ArgKind::address, true, 0},    {"mask", ArgKind::address, true, 0},
                               {"a", ArgKind::address, true, 0},     {"b", ArgKind::address, true, 0},
                               {"n", ArgKind::count, true, 0},       {"n1", ArgKind::count, false, 1},
                               {"to1", ArgKind::stride, false, 0},   {"mask1", ArgKind::stride, false, 0},
                               {"a1", ArgKind::stride, false, 0},    {"b1", ArgKind::stride, false, 0},
                               {"n2", ArgKind::count, false, 1},     {"to2", ArgKind::stride, false, 0},
                               {"mask2", ArgKind::stride, false, 0}, {"a2", ArgKind::stride, false, 0},
                               {"b2", ArgKind::stride, false, 0}};
constexpr ArgInfo kTranspose[] = {
    {"to", ArgKind::address, true, 0},    {"from", ArgKind::address, true, 0},
    {"to_row", ArgKind::stride, true, 0}, {"from_row", ArgKind::stride, true, 0},
    {"n1", ArgKind::count, false, 1},     {"to1", ArgKind::stride, false, 0},
    {"from1", ArgKind::stride, false, 0}, {"n2", ArgKind::count, false, 1},
    {"to2", ArgKind::stride, false, 0},   {"from2", ArgKind::stride, false, 0}};

constexpr ModeInfo kNone{ModeKind::none, ""};
constexpr InstructionInfo kTable[] = {
    {REGIE_TILE_OP_LOOP, "loop", {{{ModeKind::variable, "variable"}, kNone, kNone, kNone}}, kTrips},
    {REGIE_TILE_OP_END, "end", {{kNone, kNone, kNone, kNone}}, {}},
    {REGIE_TILE_OP_SET, "set", {{{ModeKind::pipe, "from"}, {ModeKind::pipe, "to"}, kNone, kNone}}, kFlag},
    {REGIE_TILE_OP_WAIT, "wait", {{{ModeKind::pipe, "from"}, {ModeKind::pipe, "to"}, kNone, kNone}}, kFlag},
    {REGIE_TILE_OP_BARRIER, "barrier", {{kNone, kNone, kNone, kNone}}, {}},
    {REGIE_TILE_OP_COPY, "copy", {{{ModeKind::place, "to"}, {ModeKind::place, "from"}, kNone, kNone}}, kCopy},
    {REGIE_TILE_OP_FILL, "fill", {{{ModeKind::place, "to"}, {ModeKind::type, "type"}, kNone, kNone}}, kFill},
    {REGIE_TILE_OP_FRACTAL,
     "fractal",
     {{{ModeKind::place, "to"}, {ModeKind::yes_no, "transposed"}, kNone, kNone}},
     kFractal},
    {REGIE_TILE_OP_IM2COL,
     "im2col",
     {{{ModeKind::place, "to"}, {ModeKind::type, "type"}, kNone, kNone}},
     kIm2col},
    {REGIE_TILE_OP_MMAD, "mmad", {{{ModeKind::type, "type"}, kNone, kNone, kNone}}, kMmad},
    {REGIE_TILE_OP_DRAIN,
     "drain",
     {{{ModeKind::type, "from"}, {ModeKind::type, "to"}, kNone, kNone}},
     kDrain},
    {REGIE_TILE_OP_BINARY,
     "binary",
     {{{ModeKind::binary, "operation"}, {ModeKind::type, "type"}, {ModeKind::by, "second"}, kNone}},
     kTwo},
    {REGIE_TILE_OP_UNARY,
     "unary",
     {{{ModeKind::unary, "operation"}, {ModeKind::type, "type"}, kNone, kNone}},
     kOne},
    {REGIE_TILE_OP_CAST,
     "cast",
     {{{ModeKind::type, "from"}, {ModeKind::type, "to"}, {ModeKind::round, "round"}, kNone}},
     kOne},
    {REGIE_TILE_OP_COMPARE,
     "compare",
     {{{ModeKind::compare, "operation"}, {ModeKind::type, "type"}, {ModeKind::by, "second"}, kNone}},
     kTwo},
    {REGIE_TILE_OP_SELECT,
     "select",
     {{{ModeKind::type, "type"}, {ModeKind::by, "second"}, kNone, kNone}},
     kSelect},
    {REGIE_TILE_OP_REDUCE,
     "reduce",
     {{{ModeKind::reduce, "operation"}, {ModeKind::type, "type"}, kNone, kNone}},
     kOne},
    {REGIE_TILE_OP_TRANSPOSE, "transpose", {{{ModeKind::width, "width"}, kNone, kNone, kNone}}, kTranspose},
    {REGIE_TILE_OP_REQUANT,
     "requant",
     {{{ModeKind::type, "from"}, {ModeKind::type, "to"}, kNone, kNone}},
     kRequant},
};

constexpr std::string_view kPipes[] = {"load", "move", "cube", "vector", "store"};
constexpr std::string_view kTypes[] = {"f16", "f32", "s32", "s8", "u8"};
constexpr std::string_view kBinary[] = {"add", "sub", "mul", "div", "max", "min", "mla"};
constexpr std::string_view kUnary[] = {"copy", "exp", "ln", "sqrt", "rsqrt", "rec", "abs", "relu", "neg"};
constexpr std::string_view kCompare[] = {"lt", "le", "gt", "ge", "eq", "ne"};
constexpr std::string_view kReduce[] = {"sum", "max", "min"};
constexpr std::string_view kBy[] = {"vector", "row", "scalar"};
constexpr std::string_view kRound[] = {"rint", "floor", "ceil", "trunc", "away"};
constexpr std::string_view kYesNo[] = {"plain", "transposed"};
constexpr std::string_view kWidths[] = {"b16", "b8", "b32"};

}  // namespace

uint32_t OnChip::size(uint32_t place) const {
  switch (place) {
    case REGIE_TILE_L1:
      return l1;
    case REGIE_TILE_L0A:
      return l0a;
    case REGIE_TILE_L0B:
      return l0b;
    case REGIE_TILE_L0C:
      return l0c;
    case REGIE_TILE_UB:
      return ub;
    default:
      return 0;
  }
}

std::span<const InstructionInfo> instruction_table() { return kTable; }

const InstructionInfo* instruction_info(uint16_t op) {
  return op >= 1 && op <= std::size(kTable) ? &kTable[op - 1] : nullptr;
}

const InstructionInfo* instruction_info(std::string_view name) {
  for (const InstructionInfo& i : kTable)
    if (name == i.name) return &i;
  return nullptr;
}

std::span<const std::string_view> mode_words(ModeKind kind) {
  switch (kind) {
    case ModeKind::pipe:
      return kPipes;
    case ModeKind::type:
      return kTypes;
    case ModeKind::binary:
      return kBinary;
    case ModeKind::unary:
      return kUnary;
    case ModeKind::compare:
      return kCompare;
    case ModeKind::reduce:
      return kReduce;
    case ModeKind::by:
      return kBy;
    case ModeKind::round:
      return kRound;
    case ModeKind::yes_no:
      return kYesNo;
    case ModeKind::width:
      return kWidths;
    default:
      return {};
  }
}

uint32_t pipe_of(const Instruction& i) { return pipe_of(i.op, i.mode); }

uint32_t pipe_of(uint16_t op, const std::array<uint8_t, 4>& mode) {
  switch (op) {
    case REGIE_TILE_OP_SET:
      return mode[0];
    case REGIE_TILE_OP_WAIT:
      return mode[1];
    case REGIE_TILE_OP_COPY:
      if (mode[1] >= REGIE_TILE_GM) return REGIE_TILE_LOAD;
      return mode[1] == REGIE_TILE_L1 ? REGIE_TILE_MOVE : REGIE_TILE_STORE;
    case REGIE_TILE_OP_FILL:
      switch (mode[0]) {
        case REGIE_TILE_L1:
          return REGIE_TILE_LOAD;
        case REGIE_TILE_L0C:
          return REGIE_TILE_CUBE;
        case REGIE_TILE_UB:
          return REGIE_TILE_VECTOR;
        default:
          return REGIE_TILE_MOVE;
      }
    case REGIE_TILE_OP_FRACTAL:
    case REGIE_TILE_OP_IM2COL:
      return REGIE_TILE_MOVE;
    case REGIE_TILE_OP_MMAD:
      return REGIE_TILE_CUBE;
    case REGIE_TILE_OP_LOOP:
    case REGIE_TILE_OP_END:
    case REGIE_TILE_OP_BARRIER:
      return REGIE_TILE_PIPES;
    default:
      return REGIE_TILE_VECTOR;
  }
}

uint32_t bytes_of(uint32_t type) {
  switch (type) {
    case REGIE_TILE_F16:
      return 2;
    case REGIE_TILE_F32:
    case REGIE_TILE_S32:
      return 4;
    default:
      return 1;
  }
}

uint32_t width_bytes(uint32_t width) { return width == REGIE_TILE_B8 ? 1 : width == REGIE_TILE_B32 ? 4 : 2; }

std::string place_name(uint32_t place) {
  constexpr const char* names[] = {"l1", "l0a", "l0b", "l0c", "ub"};
  if (place <= REGIE_TILE_UB) return names[place];
  return "gm" + std::to_string(place - REGIE_TILE_GM);
}

}  // namespace regie::tile
