#include "cli/buffers_csv.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

#include "base/file.h"
#include "base/toml.h"

namespace regie::cli {

namespace {

enum Column { kId, kLower, kUpper, kSize, kAlignment, kOffset, kColumns };
constexpr const char* kNames[kColumns] = {"id", "lower", "upper", "size", "alignment", "offset"};

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

// Cells of a line; a cell in quotes may hold commas (its quotes stay). False: a quote is not closed.
bool cells_of(std::string_view line, std::vector<std::string_view>* cells) {
  cells->clear();
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (line[i] != ',' || quoted)) continue;
    cells->push_back(trim(line.substr(begin, i - begin)));
    begin = i + 1;
  }
  return !quoted;
}

std::string quote(std::string_view text) { return "'" + std::string(text.substr(0, 60)) + "'"; }

class Reader {
 public:
  Reader(const std::string& path, uint64_t alignment) : path_(path), alignment_(alignment) {}

  Result<BufferTable> read() {
    REGIE_ASSIGN(std::string text, read_text_file(path_));
    table_.text = std::make_shared<const std::string>(std::move(text));
    std::string_view rest = *table_.text;
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
    bool header = false;
    for (uint32_t line = 1; !rest.empty(); ++line) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view row = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      line_ = line;
      if (row.empty()) continue;
      if (!cells_of(row, &cells_)) return wrong("a quote is opened and not closed");
      REGIE_TRY(header ? add_row(row) : read_header(row));
      header = true;
    }
    if (!header)
      return invalid_input("the file is empty; its first line must name the columns id, lower, upper, size",
                           path_);
    REGIE_TRY(check_ids());
    return std::move(table_);
  }

 private:
  Status wrong(const std::string& message) const {
    return invalid_input(message, path_ + ":" + std::to_string(line_));
  }

  Status read_header(std::string_view row) {
    table_.header = row;
    std::fill(std::begin(at_), std::end(at_), -1);
    for (size_t c = 0; c < cells_.size(); ++c)
      for (int k = 0; k < kColumns; ++k) {
        if (cells_[c] != kNames[k]) continue;
        if (at_[k] >= 0) return wrong("column '" + std::string(kNames[k]) + "' is there twice");
        at_[k] = static_cast<int>(c);
      }
    for (int k : {kId, kLower, kUpper, kSize}) {
      if (at_[k] >= 0) continue;
      std::vector<std::string> there(cells_.begin(), cells_.end());
      const auto near = nearest_name(kNames[k], there);
      return wrong("there is no column '" + std::string(kNames[k]) + "'" +
                   (near ? "; is '" + *near + "' meant?" : "") +
                   " (the first line must name id, lower, upper and size)");
    }
    width_ = cells_.size();
    table_.offset_column = at_[kOffset];
    return {};
  }

  Status number(Column column, uint64_t* value) const {
    const std::string_view cell = cells_[static_cast<size_t>(at_[column])];
    if (parse_whole(cell, value)) return {};
    const std::string name = kNames[column];
    if (cell.empty()) return wrong(name + " is missing");
    if (cell[0] == '-' && cell.size() > 1 && cell.find_first_not_of("0123456789", 1) == cell.npos)
      return wrong(name + " is " + quote(cell) + ", but must not be negative");
    if (cell.find_first_not_of("0123456789") == cell.npos)
      return wrong(name + " is " + quote(cell) + ", which is more than 64 bits can hold");
    return wrong(name + " is " + quote(cell) + ", which is not a whole number");
  }
  bool has(Column column) const {
    return at_[column] >= 0 && !cells_[static_cast<size_t>(at_[column])].empty();
  }

  Status add_row(std::string_view row) {
    if (cells_.size() != width_)
      return wrong("this line has " + std::to_string(cells_.size()) + " cells, the header " +
                   std::to_string(width_));
    const std::string_view id = cells_[static_cast<size_t>(at_[kId])];
    if (id.empty()) return wrong("id is missing");
    regie_memory_buffer b{};
    REGIE_TRY(number(kLower, &b.lower));
    REGIE_TRY(number(kUpper, &b.upper));
    REGIE_TRY(number(kSize, &b.size));
    if (b.lower >= b.upper)
      return wrong("lower is " + std::to_string(b.lower) + " and upper " + std::to_string(b.upper) +
                   ": a buffer lives from lower to before upper, so lower must be less");
    b.alignment = 1;
    b.offset = REGIE_OFFSET_FREE;
    if (has(kAlignment)) REGIE_TRY(number(kAlignment, &b.alignment));
    if (b.alignment == 0 || (b.alignment & (b.alignment - 1)))
      return wrong("alignment is " + std::to_string(b.alignment) + ", which is not a power of two");
    if (has(kOffset)) {
      REGIE_TRY(number(kOffset, &b.offset));
      if (b.offset % b.alignment)
        return wrong("offset is " + std::to_string(b.offset) + ", which the alignment " +
                     std::to_string(b.alignment) + " does not divide");
      if (b.offset > UINT64_MAX - 1 - b.size)
        return wrong("offset and size together are more than 64 bits can hold");
    } else {
      b.alignment = std::max(b.alignment, alignment_);
    }
    table_.rows.push_back(row);
    table_.ids.push_back(id);
    table_.lines.push_back(line_);
    table_.buffers.push_back(b);
    return {};
  }

  Status check_ids() {
    std::vector<uint32_t> order(table_.ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<size_t> hashes;
    hashes.reserve(order.size());
    for (std::string_view id : table_.ids) hashes.push_back(std::hash<std::string_view>()(id));
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (hashes[a] != hashes[b]) return hashes[a] < hashes[b];
      const int c = table_.ids[a].compare(table_.ids[b]);
      return c != 0 ? c < 0 : a < b;
    });
    uint32_t first = UINT32_MAX, before = 0;
    for (size_t k = 1; k < order.size(); ++k)
      if (table_.ids[order[k - 1]] == table_.ids[order[k]] && order[k] < first) {
        first = order[k];
        before = order[k - 1];
      }
    if (first == UINT32_MAX) return {};
    line_ = table_.lines[first];
    return wrong("id " + quote(table_.ids[first]) + " is also that of line " +
                 std::to_string(table_.lines[before]));
  }

  const std::string& path_;
  const uint64_t alignment_;
  BufferTable table_;
  std::vector<std::string_view> cells_;
  int at_[kColumns] = {};
  size_t width_ = 0;
  uint32_t line_ = 0;
};

}  // namespace

bool parse_whole(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && !text.empty() && end == text.data() + text.size();
}

Result<BufferTable> read_buffers(const std::string& path, uint64_t alignment) {
  return Reader(path, alignment).read();
}

Status write_buffers(const std::string& path, const BufferTable& table,
                     const std::vector<uint64_t>& offsets) {
  std::string out(table.header);
  if (table.offset_column < 0) out += ",offset";
  out += '\n';
  std::vector<std::string_view> cells;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const std::string offset = std::to_string(offsets[i]);
    if (table.offset_column < 0) {
      out.append(table.rows[i]).append(",").append(offset).append("\n");
      continue;
    }
    cells_of(table.rows[i], &cells);
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c) out += ',';
      out += static_cast<int>(c) == table.offset_column ? std::string_view(offset) : cells[c];
    }
    out += '\n';
  }
  return write_file_atomically(path, out);
}

}  // namespace regie::cli
