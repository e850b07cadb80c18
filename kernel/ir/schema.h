// Operator schemas: what operands, results, attributes and types an operator may have. Data, not code:
// configs/ops/*.toml and the same of any folder on REGIE_PLUGIN_PATH. The format of these files is in
// docs/graph.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "ir/graph.h"
#include "ir/padding_rule.h"

namespace regie {

class TomlTable;

// As an operand's type: each one may have any element type, whatever the others have.
inline constexpr std::string_view kAnyType = "any";

struct SchemaOperand {
  std::string name;
  std::string type;  // a key of `types` (operands of one key have one element type) or an element type
  bool optional = false;
  bool variadic = false;  // last only: zero or more
};

struct SchemaAttr {
  std::string name;
  uint32_t kind = 0;  // REGIE_ATTR_*
  bool required = false;
  bool has_default = false;
  AttrValue default_value;
  std::vector<std::string> one_of;  // allowed strings; empty: any
};

struct OpSchema {
  std::string name, doc;
  std::vector<SchemaOperand> operands, results;  // results: optional = may be omitted, variadic as above
  std::vector<SchemaAttr> attrs;
  std::map<std::string, std::vector<regie_elem>> types;  // allowed element types by key
  uint32_t min_regions = 0, max_regions = 0;
  bool open_attrs = false;  // takes any further attribute (calls)
  // How padding passes through, the first that fits; empty: nothing is declared.
  std::vector<PaddingRule> padding;
  std::string where;  // file:line
  const SchemaAttr* find_attr(std::string_view name) const;
};

class SchemaSet {
 public:
  // Reads every *.toml of the folders; an operator defined twice is an error that names both places.
  static Result<SchemaSet> load(const std::vector<std::string>& folders);
  Status add_file(const std::string& path);
  Status add_text(std::string_view toml, std::string file_name);
  const OpSchema* find(NameId op) const;
  std::vector<std::string> names() const;  // sorted
  // What frontends write an operator of theirs out as ("Add"), so that no graph has it; empty: not known.
  std::string written_out(std::string_view op) const;
  // Arity, attribute names and kinds, element types; the message says what is allowed. Does not look at
  // shapes.
  Status check(const Graph& graph, uint32_t node) const;
  // The node's attributes with the schema's defaults merged in, sorted by name, as views that live as long as
  // the schema and the graph.
  std::vector<regie_attr> with_defaults(const Graph& graph, uint32_t node) const;
  const std::string& revision() const { return revision_; }  // e.g. "onnx-21"

 private:
  Status add(const TomlTable& file);
  std::map<std::string, std::string> written_out_;
  std::unordered_map<NameId, OpSchema> ops_;
  std::string revision_;
};

}  // namespace regie
