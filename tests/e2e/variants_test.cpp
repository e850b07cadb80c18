// Every model that tests/models/variants/make.py makes (opsets, external data, control flow, single
// operators) against ONNX Runtime's outputs: on both targets, optimised or not, online and after a save and a
// load.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "regie_test_paths.h"
#include "support/api_model.h"
#include "support/scratch.h"

namespace regie::test {
namespace {

const std::string kFolder = std::string(REGIE_TEST_VARIANTS_DIR) + "/";

nlohmann::json variants() {
  std::ifstream file(kFolder + "variants.json");
  return file ? nlohmann::json::parse(file) : nlohmann::json::array();
}

TEST(Variants, EqualOnnxRuntimeEverywhere) {
  size_t models = 0;
  for (const auto& v : variants()) {
    if (v["group"] == "refused") continue;
    ++models;
    std::map<std::string, Tensor> inputs;
    for (const auto& [name, file] : v["inputs"].items())
      inputs.emplace(name, load_npy(kFolder + file.get<std::string>()));
    for (const char* target : {"host_cpu", "host_and_null"})
      for (const char* optimise : {"1", "0"}) {
        SCOPED_TRACE(v["name"].get<std::string>() + " on " + target +
                     (optimise[0] == '1' ? "" : ", not optimised"));
        ModelPtr model = compile_file(kFolder + v["model"].get<std::string>(),
                                      {{"target", target}, {"optimise", optimise}});
        EXPECT_TRUE(model) << regie_last_error();
        if (!model) continue;
        Scratch scratch;
        EXPECT_EQ(regie_model_save(model.get(), scratch.path("m.rgm").c_str()), REGIE_OK)
            << regie_last_error();
        ModelPtr loaded = load_file(scratch.path("m.rgm"));
        EXPECT_TRUE(loaded) << regie_last_error();
        for (const ModelPtr& m : {model, loaded}) {
          if (!m) continue;
          Runner runner(m);
          EXPECT_TRUE(runner.ready()) << regie_last_error();
          if (!runner.ready()) continue;
          for (int again = 0; again < 2; ++again) {
            auto out = runner.run(inputs);
            EXPECT_EQ(runner.status(), REGIE_OK) << regie_last_error();
            for (const auto& [name, file] : v["outputs"].items())
              EXPECT_TRUE(close(out[name], load_npy(kFolder + file.get<std::string>()))) << "output " << name;
          }
        }
      }
  }
  EXPECT_GE(models, 80u) << "make.py made fewer models than it should";
}

TEST(Variants, RefusedOnesSayWhy) {
  size_t models = 0;
  for (const auto& v : variants()) {
    if (v["group"] != "refused") continue;
    ++models;
    ModelPtr model = compile_file(kFolder + v["model"].get<std::string>());
    EXPECT_FALSE(model) << v["name"] << " should be refused: " << v["why"];
    EXPECT_NE(std::string(regie_last_error()).find("model.onnx"), std::string::npos) << regie_last_error();
  }
  EXPECT_GE(models, 4u);
}

}  // namespace
}  // namespace regie::test
