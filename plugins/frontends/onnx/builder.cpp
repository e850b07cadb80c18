#include "builder.h"

#include <algorithm>
#include <exception>
#include <new>

#include "gradient.h"
#include "inputs.h"
#include "regie/c/op_kernel.h"

namespace regie::onnx {

namespace {

// Length of the UTF-8 character at the start, 0 if there is none (overlong forms and surrogates included).
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const size_t length = character_length(name);
    const bool control = static_cast<unsigned char>(name[0]) < 0x20 || name[0] == 0x7f;
    if (length == 0 || control) {
      text += '?';
    } else {
      text += name.substr(0, length);
    }
    name.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

std::string full_name(const wire::Node& node) {
  std::string name(domain_of(node.domain()));
  return printable(name.empty() ? node.op_type() : name + "." + node.op_type());
}

void Builder::run() {
  check_versions();
  context_.producer = model_.producer_name();
  // Before IR version 4 every initializer had to be an input, too, and none could be given.
  const bool overridable = model_.ir_version() >= 4 && !constant_defaults(context_);
  body_ = analyse(context_, functions_, model_, overridable, &value_names_);
  check_operators();
  const std::vector<Input> inputs = read_inputs(context_, *body_);
  const std::string graph_name = printable(body_->proto->name());
  context_.import->set_graph_name(context_.import, sdk::str(graph_name));
  Scope scope;
  for (const Input& input : inputs) {
    context_.at("input " + quoted(input.name), "");
    const regie_type type{input.elem,        REGIE_TENSOR,    static_cast<int32_t>(input.dims.size()),
                          input.dims.data(), REGIE_FORMAT_ND, REGIE_FORMAT_ND};
    uint32_t value = REGIE_NONE;
    Context::check(context_.import->argument(context_.import, sdk::str(input.name), &type, &value));
    scope.values.emplace(input.name, value);
  }
  build(*body_, &scope);
  outputs(scope);
}

void Builder::check_versions() {
  if (!model_.has_graph()) context_.invalid("the file has no graph: it is truncated, or not an ONNX model");
  if (model_.ir_version() <= 0)
    context_.invalid("the file has no ir_version: it is truncated, or not an ONNX model");
  if (model_.opset_import_size() == 0)
    context_.invalid("the model imports no operator set: it is truncated, or older than ONNX IR version 3");
  const int64_t opset = functions_.model_opsets().find("");
  if (opset > kNewestOpset || (opset != 0 && opset < kOldestOpset))
    context_.unsupported("operator set " + std::to_string(opset) + " is not supported; supported are " +
                         std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset) +
                         ": convert the model, or export it for one of these");
}

// Operators of other domains that a plug-in brings (schema, shapes and kernel) pass as they are.
bool Builder::known_extension(const wire::Node& node) const {
  // "regie" is for what the host makes itself.
  const std::string_view domain = domain_of(node.domain());
  if (domain.empty() || domain == "regie") return false;
  if (full_name(node) == kGradient) return true;  // written out
  const auto* ops = static_cast<const regie_host_ops*>(context_.import->host->find(REGIE_HOST_OPS_ID));
  const regie_op_kernel_table* table = nullptr;
  uint32_t index = 0;
  return ops && ops->find_kernel(sdk::str(full_name(node)), &table, &index) == REGIE_OK;
}

// All that cannot be read is said at once.
void Builder::check_operators() {
  struct Unknown {
    std::string text;
    uint64_t count;
  };
  std::vector<std::pair<std::string, Unknown>> unknown;  // in the order of their first node
  std::unordered_map<std::string, size_t> seen;
  std::unordered_map<std::string, bool> extensions;
  std::vector<const Body*> stack{body_.get()};
  while (!stack.empty()) {
    const Body& body = *stack.back();
    stack.pop_back();
    for (const NodeRef& ref : body.nodes) {
      const std::string name = full_name(*ref.node);
      const std::string_view domain = domain_of(ref.node->domain());
      const int64_t opset = ref.opsets->find(domain);
      if (opset == 0) {
        context_.at(ref.name, name);
        context_.invalid(ref.opsets->owner + " does not import the operator set of its domain, " +
                         quoted(domain.empty() ? "ai.onnx" : domain));
      }
      std::string text;
      if (!domain.empty()) {
        auto [it, is_new] = extensions.emplace(name, false);
        if (is_new) it->second = known_extension(*ref.node) || find_operator_of_microsoft(name);
        if (it->second) continue;
        text = name;
      } else if (opset < kOldestOpset || opset > kNewestOpset) {
        text = name + " of operator set " + std::to_string(opset);
      } else if (const Operator* op = find_operator(name); !op) {
        text = name;
      } else if (opset < first_version(*op)) {
        context_.at(ref.name, name);
        context_.invalid("the operator exists from operator set " + std::to_string(first_version(*op)) +
                         " on, and " + ref.opsets->owner + " imports " + std::to_string(opset));
      } else if (!form_at(*op, opset)) {
        text = name + " of operator set " + std::to_string(opset) + " (supported from " +
               std::to_string(op->forms[0].since) + " on)";
      } else {
        continue;
      }
      auto [it, is_new] = seen.emplace(text, unknown.size());
      if (is_new) unknown.emplace_back(text, Unknown{ref.name, 0});
      ++unknown[it->second].second.count;
    }
    // In the order of the file.
    for (auto node = body.subgraphs.rbegin(); node != body.subgraphs.rend(); ++node)
      for (auto sub = node->second.rbegin(); sub != node->second.rend(); ++sub)
        stack.push_back(sub->second.get());
  }
  if (unknown.empty()) return;
  std::string text = unknown.size() == 1 ? "operator " : std::to_string(unknown.size()) + " operators: ";
  for (size_t i = 0; i < unknown.size(); ++i) {
    const Unknown& u = unknown[i].second;
    text += (i ? ", " : "") + unknown[i].first + " (node " + quoted(u.text) +
            (u.count > 1 ? " and " + std::to_string(u.count - 1) + " more" : "") + ")";
  }
  context_.at("", "");
  context_.unsupported(
      text + (unknown.size() == 1 ? " is" : " are") +
      " not supported; `regie plugins describe ops-standard` lists the operators that are, and a plug-in "
      "may bring more (docs/plugin.md)");
}

void Builder::outputs(const Scope& scope) {
  std::vector<uint32_t> values;
  std::vector<regie_str> names;
  for (const wire::ValueInfo& v : body_->proto->output()) {
    context_.at("output " + quoted(v.name()), "");
    const uint32_t id = scope.find(v.name());
    if (is_sequence(id)) context_.unsupported("the output is a sequence; only tensors can be outputs");
    const int32_t declared = v.type().tensor_type().elem_type();
    if (declared != 0 && declared != value(id).type.elem)
      context_.invalid("the model says that the output is of " +
                       std::string(element_name(element_type(context_, declared))) + ", its operators make " +
                       std::string(element_name(value(id).type.elem)));
    values.push_back(id);
    names.push_back(sdk::str(v.name()));
    if (auto it = unranked_.find(id); it != unranked_.end()) {  // its dimensions follow, without a name
      values.push_back(it->second);
      names.push_back({});
    }
  }
  context_.at("", "");
  if (values.empty()) context_.invalid("the model has no outputs");
  Context::check(context_.import->results(context_.import, static_cast<uint32_t>(values.size()),
                                          values.data(), names.data()));
}

regie_status import_model(const regie_import* import) {
  const regie_host* host = import->host;
  Context context(import);
  try {
    wire::Model model;
    try {
      read_model(import->source->data, import->source->size, &model);
    } catch (const sdk::Failure& f) {
      context.fail(f.code, f.message);
    }
    Builder(context, model).run();
    return REGIE_OK;
  } catch (const HostFailure& f) {
    return f.code;
  } catch (const sdk::Failure& f) {
    return sdk::fail(host, f.code, f.message, f.where);
  } catch (const std::bad_alloc&) {
    return sdk::fail(host, REGIE_OUT_OF_MEMORY, "not enough memory to read the model", context.file);
  } catch (const std::exception& e) {
    return sdk::fail(host, REGIE_INTERNAL, e.what(), context.file);
  } catch (...) {
    return sdk::fail(host, REGIE_INTERNAL, "unknown exception", context.file);
  }
}

}  // namespace regie::onnx
