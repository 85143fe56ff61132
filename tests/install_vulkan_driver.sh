#!/usr/bin/env bash
# A Vulkan driver that needs no GPU, for the tests of WebGPU: SwiftShader, which Debian's chromium brings, and the loader.
# (Debian 12's lavapipe is too old for Dawn.) As root, on Debian or a system like it.
set -euo pipefail
driver=/usr/lib/chromium/vk_swiftshader_icd.json
if [ ! -e "$driver" ] || ! ldconfig -p | grep -q libvulkan.so.1; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium libvulkan1 >/dev/null
fi
echo "$driver"
