// One import while a frontend builds its graph: the C callbacks of regie_import, regie_source and
// regie_edit_api, over a graph that changes at once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "passes/importer.h"

namespace regie {

// The same failure with the user's place. Which plug-in was running helps those who write plug-ins, not those
// whose model is wrong.
Status said_of(const Status& status, const std::string& where);

class Importer : public regie_import {
 public:
  Importer(const OpSet& ops, std::string path, std::span<const std::byte> bytes,
           std::shared_ptr<const void> owner, const ImportSettings& settings);
  Importer(const Importer&) = delete;

  Result<std::unique_ptr<Graph>> finish(const std::string& frontend);
  // An input that a run may leave out, if there is one: what it is would be known if it were a constant.
  std::string_view input_with_default() const;
  // Those that the frontend asked for, as it named them.
  std::vector<std::string> external_files() const { return {external_names_.begin(), external_names_.end()}; }

 private:
  struct Source : regie_source {
    Importer* importer;
  };
  struct Mapping {  // bytes that outlive the import
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::shared_ptr<const void> owner;
  };
  static Importer& of(const regie_import* self) {
    return *static_cast<Importer*>(const_cast<regie_import*>(self));
  }
  static Importer& of(regie_edit* edit) { return *reinterpret_cast<Importer*>(edit); }
  static const regie_edit_api& edit_functions();

  regie_status give(Status status) {
    if (status.ok()) return REGIE_OK;
    return fail_on_this_thread(status);
  }
  // The frontend called a function in a way that its contract forbids.
  Status broken(std::string what) const { return bad_plugin("the frontend " + std::move(what), place()); }
  std::string place() const { return place_.empty() ? path_ : path_ + ": " + place_; }
  Status placed(Status status) const;

  Status open_external(regie_str relative, uint64_t offset, uint64_t length, const void** data,
                       uint64_t* size);
  Status add_argument(regie_str name, const regie_type& type, uint32_t* value);
  Status set_results(std::span<const uint32_t> values, const regie_str* names);
  Status add_constant(uint32_t kind, const regie_tensor& tensor, regie_str name, uint32_t* value);
  Status add_node(const regie_node_desc& desc, uint32_t* results);
  Status open_region(regie_str name, std::span<const regie_type> types, const regie_str* names,
                     uint32_t* region, uint32_t* args);
  Status close_region(std::span<const uint32_t> results);
  Status abandon_region();
  void set_origin_text(regie_str name, regie_str op);

  uint32_t here() const { return open_.back(); }
  bool visible(uint32_t value) const;
  Status check_type(const regie_type& type, std::string_view what) const;

  const OpSet& ops_;
  const std::string path_;
  Source source_{};
  ConfigText options_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::vector<Mapping> mappings_;
  std::map<std::string, MappedFile> files_;
  std::set<std::string> external_names_;
  std::vector<uint32_t> open_{0};                           // regions that are open, outermost first
  std::set<uint32_t> detached_;                             // closed, and not yet owned by a node
  std::map<std::string, uint32_t, std::less<>> arguments_;  // by name
  std::string place_, origin_;
  bool has_results_ = false;
};

}  // namespace regie
