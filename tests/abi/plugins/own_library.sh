# own_library.sh PATCHELF LIBRARY COPY PLUGIN: copies LIBRARY to COPY under the copy's name as soname, and makes PLUGIN, which was
# linked with LIBRARY, load the copy from its own folder.
patchelf=$1 library=$2 copy=$3 plugin=$4
soname=$("$patchelf" --print-soname "$library")
"$patchelf" --print-needed "$plugin" | grep -qxF "$soname" || {
  echo "own_library.sh: $plugin does not load $soname" >&2
  exit 1
}
cp "$library" "$copy.new"
chmod u+w "$copy.new"
"$patchelf" --set-soname "$(basename "$copy")" "$copy.new"
mv "$copy.new" "$copy"
# One change a call: 0.14 mixes the strings up otherwise.
"$patchelf" --set-rpath '$ORIGIN' "$plugin"
"$patchelf" --replace-needed "$soname" "$(basename "$copy")" "$plugin"
