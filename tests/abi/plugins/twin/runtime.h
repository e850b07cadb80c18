// A library with the habits that make two copies in one process clash: a registry that refuses a name twice,
// an inline variable, static data of a template (symbols that the dynamic linker would make unique), and
// thread-local state.
#pragma once

#include <map>
#include <string>

namespace twin {

const char* version();
// Aborts the process if `name` is registered twice in this copy, as some run-time libraries do.
void register_name(const std::string& name);
size_t registered();

inline int inline_counter = 0;
template <class T>
struct Shared {
  static int counter;
  static int& thread_counter() {
    thread_local int n = 0;
    return n;
  }
};
template <class T>
int Shared<T>::counter = 0;

}  // namespace twin
