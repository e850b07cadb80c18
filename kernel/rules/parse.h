// Parsers of the two texts of a rule, checked against the operator schemas as they are read. Internal.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/schema.h"
#include "rules/lexer.h"
#include "rules/rule.h"

namespace regie {

// Fills nodes, order, values, match_values and attrs. `commutative`: operators whose two operands may come
// either way.
Status parse_match(std::string_view text, const std::string& file, int line, const SchemaSet& schemas,
                   const std::vector<std::string>& commutative, Rule* rule);
// Fills statements, replaced and the values behind match_values. After the match and the lets.
Status parse_replace(std::string_view text, const std::string& file, int line, const SchemaSet& schemas,
                     Rule* rule);

Result<const OpSchema*> find_schema(const SchemaSet& schemas, const std::string& op,
                                    const std::string& where);
std::vector<std::string> attr_names(const OpSchema& schema);
Status unknown_attr(const std::string& name, const std::vector<const OpSchema*>& schemas,
                    const std::string& where);

}  // namespace regie
