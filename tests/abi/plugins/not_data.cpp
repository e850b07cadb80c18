// Exports the symbol, but as a function.
extern "C" __attribute__((visibility("default"))) int regie_plugin_entry() { return 0; }
