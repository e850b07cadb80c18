#include "cache/key.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/hash.h"

namespace regie {

namespace {

struct KindText {
  std::string_view kind;
  std::string_view title;  // before the name
  std::string_view other;  // for values that are digests: what differs; empty: the values are shown
};
constexpr KindText kKinds[] = {
    {"regie", "Regie itself", ""},
    {"regie-file", "Regie itself", "another build of"},
    {"model", "the model", "other bytes"},
    {"external", "the model's file", "other bytes"},
    {"option", "the option", ""},
    {"pipeline", "the pipeline", ""},
    {"passes", "the pipeline", "other passes or options"},
    {"rules", "rule file", "other text"},
    {"file", "the file", "other bytes"},
    {"operators", "operator file", "other text"},
    {"target", "target", "other text"},
    {"plug-in", "plug-in", "other digest"},
    {"version", "plug-in", ""},
    {"library", "library", "other digest"},
    {"cpu", "the processor's", ""},
    {"environment", "the environment variable", ""},
};

const KindText& text_of(std::string_view kind) {
  static constexpr KindText kUnknown{"", "the part", ""};
  const auto* it =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindText& k) { return k.kind == kind; });
  return it == std::end(kKinds) ? kUnknown : *it;
}

// All values of this kind and name, in order: an option may be given several times.
std::vector<std::string> values_of(const CacheKey& key, const KeyPart& like) {
  std::vector<std::string> values;
  for (const KeyPart& p : key.parts())
    if (p.kind == like.kind && p.name == like.name) values.push_back(p.value);
  return values;
}

std::string shown(const std::vector<std::string>& values) {
  if (values.empty()) return "not given";
  std::string text;
  for (const std::string& v : values) text += (text.empty() ? "" : " ") + (v.empty() ? "\"\"" : v);
  return text;
}

std::string sentence(const KeyPart& part, const std::vector<std::string>& here,
                     const std::vector<std::string>& there) {
  const KindText& kind = text_of(part.kind);
  const std::string what = std::string(kind.title) + (part.name.empty() ? "" : " " + part.name);
  if (kind.other.empty()) return what + ": " + shown(here) + " here, " + shown(there) + " there";
  if (here.empty()) return what + ": only there";
  if (there.empty()) return what + ": only here";
  if (part.kind == "regie-file") return std::string(kind.other) + " " + part.name;
  return what + ": " + std::string(kind.other);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

}  // namespace

void CacheKey::add(std::string kind, std::string name, std::string value) {
  parts_.push_back({std::move(kind), std::move(name), std::move(value)});
}

std::string_view CacheKey::find(std::string_view kind, std::string_view name) const {
  for (const KeyPart& p : parts_)
    if (p.kind == kind && p.name == name) return p.value;
  return {};
}

std::string CacheKey::digest() const {
  Hasher h;
  for (const KeyPart& p : parts_) h.text(p.kind).text(p.name).text(p.value);
  return h.hex();
}

std::vector<std::string> differences(const CacheKey& here, const CacheKey& there) {
  std::vector<std::string> out;
  std::vector<KeyPart> seen;
  // Another pipeline or target brings plug-ins and rules along: what only one side has is listed in one line.
  std::map<std::string, std::vector<std::string>> only_here, only_there;
  auto compare = [&](const KeyPart& part) {
    const KeyPart what{part.kind, part.name, {}};
    if (std::find(seen.begin(), seen.end(), what) != seen.end()) return;
    seen.push_back(what);
    const auto a = values_of(here, part), b = values_of(there, part);
    if (a == b) return;
    const std::string kind = part.kind == "version" ? "plug-in" : part.kind;
    if ((kind == "plug-in" || kind == "rules") && (a.empty() || b.empty())) {
      std::vector<std::string>& names =
          (a.empty() ? only_there : only_here)[std::string(text_of(kind).title)];
      if (std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
      return;
    }
    out.push_back(sentence(part, a, b));
  };
  for (const KeyPart& p : here.parts()) compare(p);
  for (const KeyPart& p : there.parts()) compare(p);
  auto add = [&](const auto& lists, const char* where) {
    for (const auto& [title, names] : lists) {
      std::string text = names.size() == 1
                             ? title + " " + names[0] + ": only " + where
                             : std::to_string(names.size()) + " " + title + "s only " + where + ": ";
      for (size_t i = 0; names.size() > 1 && i < names.size(); ++i) text += (i ? ", " : "") + names[i];
      out.push_back(std::move(text));
    }
  };
  add(only_here, "here");
  add(only_there, "there");
  if (out.empty() && !(here == there)) out.emplace_back("the order of the options");
  return out;
}

std::string to_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) line += (i ? "\t" : "") + escaped(fields[i]);
  return line + "\n";
}

std::vector<std::vector<std::string>> read_lines(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // a line that was cut off
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    std::vector<std::string>& fields = lines.emplace_back();
    for (;;) {
      const size_t tab = line.find('\t');
      fields.push_back(unescaped(line.substr(0, tab)));
      if (tab == std::string_view::npos) break;
      line.remove_prefix(tab + 1);
    }
  }
  return lines;
}

std::string with_checksum(std::string lines) { return lines + to_line({Hasher().text(lines).hex()}); }

std::optional<std::vector<std::vector<std::string>>> checked_lines(std::string_view text) {
  auto lines = read_lines(text);
  if (lines.size() < 2 || text.size() < 2) return std::nullopt;
  const size_t body = text.rfind('\n', text.size() - 2) + 1;
  if (lines.back() != std::vector<std::string>{Hasher().text(text.substr(0, body)).hex()})
    return std::nullopt;
  lines.pop_back();
  return lines;
}

}  // namespace regie
