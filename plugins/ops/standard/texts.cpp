// Operators of strings: StringConcat, StringNormalizer and StringSplit. A tensor of strings holds
// where each one's characters lie; those that an operator makes lie in memory that the caller gives with the
// results, and those that it hands on stay where they are.
#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cstring>

#include "broadcast.h"

namespace regie::ops {
namespace {

using Text = regie_str;

bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// ---- StringConcat ----

void infer_concat(const Infer& infer) { infer.result(0, REGIE_STRING, broadcast_operands(infer, 0, 2)); }

KernelPtr prepare_concat(Prepare& p) {
  if (p.in(0).elem != REGIE_STRING || p.in(1).elem != REGIE_STRING) p.bad("needs two tensors of strings");
  const Walk<3> walk = broadcast_walk(p);
  return make_kernel([=](const Call& call) {
    auto each = [&](auto&& f) {
      walk.rows([&](const auto& at, int64_t count, const auto& step) {
        for (int64_t i = 0; i < count; ++i)
          f(call.in<Text>(0)[at[0] + i * step[0]], call.in<Text>(1)[at[1] + i * step[1]],
            call.out<Text>(0)[at[2] + i * step[2]]);
      });
    };
    uint64_t total = 0;
    each([&](const Text& a, const Text& b, Text&) { total += a.size + b.size; });
    char* room = call.characters(0, total);
    each([&](const Text& a, const Text& b, Text& y) {
      // The result may not lie on an operand, but its characters follow each other.
      const Text left = a, right = b;
      y = {room, left.size + right.size};
      for (const Text& part : {left, right}) {
        if (part.size) std::memcpy(room, part.data, part.size);
        room += part.size;
      }
    });
  });
}

// ---- StringNormalizer ----

// Characters of UTF-8, one at a time; a byte that begins none stands for itself.
struct Letters {
  std::string_view rest;
  bool next(wint_t* letter, std::string_view* bytes) {
    if (rest.empty()) return false;
    const auto first = static_cast<unsigned char>(rest[0]);
    const size_t size = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 1;
    wint_t value = size == 1 ? first : first & (0x7f >> size);
    bool whole = size <= rest.size() && (size > 1 || first < 0x80);
    for (size_t i = 1; whole && i < size; ++i) {
      const auto byte = static_cast<unsigned char>(rest[i]);
      whole = (byte & 0xc0) == 0x80;
      value = value << 6 | (byte & 0x3f);
    }
    *bytes = rest.substr(0, whole ? size : 1);
    *letter = whole ? value : WEOF;
    rest.remove_prefix(bytes->size());
    return true;
  }
};

size_t write_letter(wint_t letter, char* to) {
  const auto c = static_cast<uint32_t>(letter);
  auto put = [&](size_t i, uint32_t byte) { to[i] = static_cast<char>(byte); };
  if (c < 0x80) return put(0, c), 1;
  if (c < 0x800) return put(0, 0xc0 | c >> 6), put(1, 0x80 | (c & 0x3f)), 2;
  if (c < 0x10000)
    return put(0, 0xe0 | c >> 12), put(1, 0x80 | (c >> 6 & 0x3f)), put(2, 0x80 | (c & 0x3f)), 3;
  put(0, 0xf0 | c >> 18), put(1, 0x80 | (c >> 12 & 0x3f)), put(2, 0x80 | (c >> 6 & 0x3f)),
      put(3, 0x80 | (c & 0x3f));
  return 4;
}

enum class Case { kNone, kLower, kUpper };

// Letters of every script, one for one, as the C library's UTF-8 locale has them.
class Folding {
 public:
  Folding() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (!locale_) throw sdk::Failure(REGIE_UNSUPPORTED, "the system has no locale C.UTF-8");
  }
  ~Folding() { freelocale(locale_); }
  Folding(const Folding&) = delete;
  Folding& operator=(const Folding&) = delete;

  // The bytes of `text` in that case, written to `to` unless it is NULL.
  size_t change(std::string_view text, Case to_case, char* to) const {
    size_t size = 0;
    wint_t letter = 0;
    std::string_view bytes;
    for (Letters letters{text}; letters.next(&letter, &bytes);) {
      char made[4];
      if (letter == WEOF || to_case == Case::kNone) {
        if (to) std::memcpy(to + size, bytes.data(), bytes.size());
        size += bytes.size();
        continue;
      }
      const size_t count = write_letter(
          to_case == Case::kLower ? towlower_l(letter, locale_) : towupper_l(letter, locale_), made);
      if (to) std::memcpy(to + size, made, count);
      size += count;
    }
    return size;
  }
  bool same_letters(std::string_view a, std::string_view b) const {
    Letters left{a}, right{b};
    wint_t x = 0, y = 0;
    std::string_view of_x, of_y;
    for (;;) {
      const bool more = left.next(&x, &of_x);
      if (more != right.next(&y, &of_y)) return false;
      if (!more) return true;
      if (x == WEOF || y == WEOF ? of_x != of_y : towlower_l(x, locale_) != towlower_l(y, locale_))
        return false;
    }
  }

 private:
  locale_t locale_;
};

struct Normalizer {
  explicit Normalizer(std::string_view op, const sdk::Attrs& attrs)
      : exact(attrs.integer("is_case_sensitive", 0) != 0) {
    static constexpr std::string_view kActions[] = {"NONE", "LOWER", "UPPER"};
    action = static_cast<Case>(choice(op, attrs, "case_change_action", kActions));
    for (std::string_view word : texts(attrs, "stopwords")) stopwords.emplace_back(word);
  }
  bool stops(std::string_view word) const {
    return std::any_of(stopwords.begin(), stopwords.end(), [&](const std::string& stop) {
      return exact ? word == stop : folding.same_letters(word, stop);
    });
  }
  // How many of these stay; one, which is empty, where none does.
  int64_t count(const Text* words, int64_t size) const {
    int64_t kept = 0;
    for (int64_t i = 0; i < size; ++i) kept += !stops(sdk::sv(words[i]));
    return std::max<int64_t>(kept, 1);
  }
  bool exact;
  Case action;
  std::vector<std::string> stopwords;
  Folding folding;
};

void infer_normalizer(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() != 1 && (x.size() != 2 || !infer.agree(x[0], 1)))
    infer.bad("the operand must be a list, or a matrix of one row, not " + infer.print(x));
  Shape y(x.begin(), x.end());
  const regie_tensor* data = infer.in(0).data;
  y.back() = REGIE_DIM_UNKNOWN;
  if (texts(infer.attrs, "stopwords").empty() && infer.surely_at_least(x.back(), 1)) {
    y.back() = x.back();
  } else if (data && data->data && data->elem == REGIE_STRING) {
    y.back() =
        Normalizer(infer.op, infer.attrs).count(static_cast<const Text*>(data->data), sdk::count_of(*data));
  }
  infer.result(0, REGIE_STRING, y);
}

KernelPtr prepare_normalizer(Prepare& p) {
  if (p.in(0).elem != REGIE_STRING || p.out(0).elem != REGIE_STRING) p.bad("needs a tensor of strings");
  auto how = std::make_shared<const Normalizer>(p.op, p.attrs);
  const int64_t size = sdk::count_of(p.in(0)), kept = sdk::count_of(p.out(0));
  p.scratch_bytes = static_cast<uint64_t>(size);
  return make_kernel([how, size, kept](const Call& call) {
    const Text* from = call.in<Text>(0);
    auto* stays = call.scratch<uint8_t>();
    int64_t count = 0;
    uint64_t total = 0;
    for (int64_t i = 0; i < size; ++i) {
      stays[i] = !how->stops(sdk::sv(from[i]));
      if (!stays[i]) continue;
      ++count;
      total += how->folding.change(sdk::sv(from[i]), how->action, nullptr);
    }
    if (std::max<int64_t>(count, 1) != kept)
      throw sdk::Failure(REGIE_INVALID_INPUT,
                         "StringNormalizer: another number of words stays than the result has");
    char* room = call.characters(0, total);
    Text* to = call.out<Text>(0);
    for (int64_t i = 0; i < kept; ++i) to[i] = {room, 0};
    for (int64_t i = 0; i < size; ++i) {
      if (!stays[i]) continue;
      const size_t written = how->folding.change(sdk::sv(from[i]), how->action, room);
      *to++ = {room, written};
      room += written;
    }
  });
}

// ---- StringSplit ----

struct Splitter {
  explicit Splitter(const sdk::Attrs& attrs)
      : delimiter(attrs.text("delimiter", "")), most(attrs.integer("maxsplit", INT64_MAX)) {}

  // The pieces in their order, as Python's str.split has them: without a delimiter, at runs of blanks.
  template <class F>
  int64_t each(std::string_view text, F&& piece) const {
    int64_t count = 0;
    auto give = [&](std::string_view part) { piece(count++, part); };
    if (!delimiter.empty()) {
      for (size_t end; count < most && (end = text.find(delimiter)) != std::string_view::npos;) {
        give(text.substr(0, end));
        text.remove_prefix(end + delimiter.size());
      }
      give(text);
      return count;
    }
    for (;;) {
      while (!text.empty() && blank(text.front())) text.remove_prefix(1);
      if (text.empty()) return count;
      if (count >= most) break;
      const size_t end = static_cast<size_t>(std::find_if(text.begin(), text.end(), blank) - text.begin());
      give(text.substr(0, end));
      text.remove_prefix(end);
    }
    give(text);
    return count;
  }
  int64_t count(std::string_view text) const {
    return each(text, [](int64_t, std::string_view) {});
  }
  std::string delimiter;
  int64_t most;
};

int64_t most_pieces(const Splitter& how, const Text* texts, int64_t size) {
  int64_t most = 0;
  for (int64_t i = 0; i < size; ++i) most = std::max(most, how.count(sdk::sv(texts[i])));
  return most;
}

void infer_split(const Infer& infer) {
  auto x = infer.shape(0);
  Shape y(x.begin(), x.end());
  const regie_tensor* data = infer.in(0).data;
  y.push_back(REGIE_DIM_UNKNOWN);
  if (data && data->data && data->elem == REGIE_STRING)
    y.back() = most_pieces(Splitter(infer.attrs), static_cast<const Text*>(data->data), sdk::count_of(*data));
  infer.result(0, REGIE_STRING, y);
  infer.result(1, REGIE_I64, x);
}

KernelPtr prepare_split(Prepare& p) {
  if (p.in(0).elem != REGIE_STRING) p.bad("needs a tensor of strings");
  Index x = p.shape(0);
  const bool pieces = p.wants(0), counts = p.wants(1);
  if (counts) p.expect_result(1, x);
  int64_t width = 0;
  if (pieces) {
    Index y = p.out_shape(0);
    if (p.out(0).elem != REGIE_STRING || y.size() != x.size() + 1 ||
        !std::equal(x.begin(), x.end(), y.begin()))
      p.bad("the result does not fit");
    width = y.back();
  }
  return make_kernel([=, how = Splitter(p.attrs), size = sdk::count_of(p.in(0))](const Call& call) {
    const Text* from = call.in<Text>(0);
    for (int64_t i = 0; i < size; ++i) {
      Text* to = pieces ? call.out<Text>(0) + i * width : nullptr;
      for (int64_t k = 0; k < width; ++k) to[k] = {"", 0};
      const int64_t count = how.each(sdk::sv(from[i]), [&](int64_t k, std::string_view part) {
        if (pieces && k < width) to[k] = sdk::str(part);
      });
      if (pieces && count > width)
        throw sdk::Failure(REGIE_INVALID_INPUT,
                           "StringSplit: a string has more pieces than the result has room for");
      if (counts) call.out<int64_t>(1)[i] = count;
    }
  });
}

constexpr Op table[] = {
    {"StringConcat", 0, infer_concat, prepare_concat},
    {"StringNormalizer", 0, infer_normalizer, prepare_normalizer},
    {"StringSplit", 0, infer_split, prepare_split},
};

}  // namespace

std::span<const Op> string_ops() { return table; }

}  // namespace regie::ops
