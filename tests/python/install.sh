# install.sh CMAKE BUILD PYTHON PACKAGE: installs the build below itself and from there the package into the Python.
cmake=$1 build=$2 python=$3 package=$4
"$cmake" --install "$build" --prefix "$build/python-prefix" >"$build/python-install.log"
"$python" -m pip install --quiet --disable-pip-version-check --no-input --no-index --no-build-isolation --no-deps \
  --force-reinstall --config-settings "cmake.define.REGIE_PREFIX=$build/python-prefix" \
  --config-settings "build-dir=$build/python" "$package"
"$python" -c 'import regie; print("regie", regie.__version__)'
