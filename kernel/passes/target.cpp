#include "passes/target.h"

#include <algorithm>
#include <bit>

#include "base/toml_lists.h"

namespace regie {

namespace {

Result<Params> read_params(const TomlTable& table, std::string_view key) {
  Params params;
  auto value = table.find(key);
  if (!value) return params;
  REGIE_ASSIGN(TomlTable t, value->as_table());
  for (const std::string& k : t.keys()) params.emplace_back(k, t.find(k)->to_text());
  return params;
}

void set(Params* params, const std::string& key, const std::string& value) {
  auto it = std::find_if(params->begin(), params->end(), [&](const auto& p) { return p.first == key; });
  if (it == params->end())
    params->emplace_back(key, value);
  else
    it->second = value;
}

Result<uint32_t> device_index(const Target& target, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < target.devices.size(); ++i) {
    if (target.devices[i].name == name) return i;
    names.push_back(target.devices[i].name);
  }
  std::string hint;
  if (auto near = nearest_name(name, names)) hint = "; did you mean '" + *near + "'?";
  return invalid_input("there is no [[device]] named '" + name + "'" + hint, where);
}

Status read_device(const TomlTable& t, Target* target) {
  TargetDevice d;
  REGIE_ASSIGN(d.name, require_string(t, "name"));
  REGIE_ASSIGN(d.plugin, require_string(t, "plugin"));
  REGIE_ASSIGN(d.params, read_params(t, "params"));
  if (auto v = t.find("alignment")) {
    REGIE_ASSIGN(const double bytes, v->as_number());
    if (!(bytes >= 64 && bytes <= 65536) || !std::has_single_bit(static_cast<uint64_t>(bytes)) ||
        bytes != static_cast<double>(static_cast<uint64_t>(bytes)))
      return invalid_input("alignment must be a power of two from 64 to 65536", t.where());
    d.alignment = static_cast<uint64_t>(bytes);
  }
  for (const TargetDevice& other : target->devices)
    if (other.name == d.name) return invalid_input("device '" + d.name + "' is there twice", t.where());
  target->devices.push_back(std::move(d));
  return {};
}

Status read_engine(const TomlTable& t, Target* target) {
  TargetEngine e;
  REGIE_ASSIGN(e.name, require_string(t, "name"));
  REGIE_ASSIGN(e.plugin, require_string(t, "plugin"));
  REGIE_ASSIGN(std::string device, require_string(t, "device"));
  REGIE_ASSIGN(e.device, device_index(*target, device, t.where()));
  REGIE_ASSIGN(Params own, read_params(t, "params"));
  e.params = target->devices[e.device].params;
  for (auto& [key, value] : own) set(&e.params, key, value);
  for (const TargetEngine& other : target->engines)
    if (other.name == e.name) return invalid_input("engine '" + e.name + "' is there twice", t.where());
  target->engines.push_back(std::move(e));
  return {};
}

}  // namespace

uint32_t Target::device_of(uint32_t space) const {
  for (uint32_t d = 0; d < devices.size(); ++d)
    if (space_of(d) == space) return d;
  return host_device;
}

Result<Target> load_target(const PluginHost& host, std::string_view name_or_path, const Params& settings) {
  Target target;
  REGIE_ASSIGN(target.path, host.find_config("targets", name_or_path));
  REGIE_ASSIGN(TomlTable doc, TomlTable::parse_file(target.path));
  REGIE_TRY(doc.check_schema(1));
  REGIE_ASSIGN(target.name, require_string(doc, "name"));
  REGIE_ASSIGN(target.doc, doc.string_or("doc", ""));
  REGIE_TRY(for_each_table(doc, "device", [&](const TomlTable& t) { return read_device(t, &target); }));
  REGIE_TRY(for_each_table(doc, "engine", [&](const TomlTable& t) { return read_engine(t, &target); }));
  if (target.devices.empty()) return invalid_input("the target has no [[device]]", target.path);
  for (const auto& [name, value] : settings)
    for (TargetEngine& e : target.engines)
      if (name.size() > e.name.size() + 1 && name.starts_with(e.name) && name[e.name.size()] == '.')
        set(&e.params, name.substr(e.name.size() + 1), value);
  REGIE_ASSIGN(TomlValue host_value, doc.require("host"));
  REGIE_ASSIGN(TomlTable host_table, host_value.as_table());
  REGIE_ASSIGN(std::string host_name, require_string(host_table, "device"));
  REGIE_ASSIGN(target.host_device, device_index(target, host_name, host_table.where()));
  REGIE_TRY(host_table.finish());
  if (auto transfer = doc.find("transfer")) {
    REGIE_ASSIGN(TomlTable t, transfer->as_table());
    if (auto v = t.find("latency_ns")) {
      REGIE_ASSIGN(target.latency_ns, v->as_number());
    }
    if (auto v = t.find("bytes_per_ns")) {
      REGIE_ASSIGN(target.bytes_per_ns, v->as_number());
    }
    if (auto v = t.find("sync_ns")) {
      REGIE_ASSIGN(target.sync_ns, v->as_number());
    }
    if (!(target.latency_ns >= 0) || !(target.sync_ns >= 0) || !(target.bytes_per_ns > 0))
      return invalid_input("latency_ns and sync_ns must be at least 0 and bytes_per_ns greater than 0",
                           t.where());
    REGIE_TRY(t.finish());
  }
  REGIE_TRY(doc.finish());
  bool host_engine = std::any_of(target.engines.begin(), target.engines.end(),
                                 [&](const TargetEngine& e) { return e.device == target.host_device; });
  if (!host_engine)
    return invalid_input(
        "no [[engine]] compiles for the host's device '" + host_name + "': control flow could not run",
        target.path);
  return target;
}

}  // namespace regie
