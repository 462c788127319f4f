#!/bin/bash
# Creates one file system on all local NVMe disks of this node (RAID 0 of several), mounts it on the host and creates
# its folder `scratch`, for which pods wait. It is safe to run again at any time: it keeps an existing file system, and
# repeats interrupted steps. Runs privileged, with the host's /dev, the mount point's parent folder (mount propagation
# Bidirectional) and the host's /proc as /host/proc, which shows its mounts.
# It rejects disks with other data, unless WIPE_FOREIGN is true, and always disks in use.
set -euo pipefail
shopt -s inherit_errexit

mount_point=${MOUNT_POINT:-/mnt/nvme}
filesystem=${FILESYSTEM:-xfs}
wipe_foreign=${WIPE_FOREIGN:-false}
host_mounts=/host/proc/1/mounts
# Name of the array and label of the file system, which identify the script's data. XFS labels have at most 12
# characters.
mark=nvme-scratch
# Azure's local disks, v1 and v2 (udev/80-azure-disk.rules of Azure/azure-vm-utils). OS and data disks of v6 sizes are
# also NVMe, with the model "MSFT NVMe Accelerator v1.0".
local_disk="Microsoft NVMe Direct Disk"
replace="Replace the node: cordon it, then delete its machine"

log() { echo "local-nvme-scratch: $*"; }

fail() {
    log "ERROR: $*" >&2
    exit 1
}

# Prints the names of the local disks, one per line.
local_disks() {
    local file name model
    for file in /sys/block/nvme*/device/model; do
        name=$(basename "$(dirname "$(dirname "$file")")")
        # `read` drops trailing blanks of the model. A path of a multipath device (nvme0c0n1) is not a disk.
        if [[ $name =~ ^nvme[0-9]+n[0-9]+$ ]] && read -r model <"$file" && [[ $model == "$local_disk"* ]]; then
            echo "$name"
        fi
    done
}

# Prints the host's mount points of a device, one per line.
mounts_of() {
    local source target
    while read -r source target _; do
        if [[ $source == "$1" ]]; then echo "$target"; fi
    done <"$host_mounts"
}

# Prints the device that the host has mounted at the mount point: the last mount hides others.
mounted() {
    local source target found=""
    while read -r source target _; do
        if [[ $target == "$mount_point" ]]; then found=$source; fi
    done <"$host_mounts"
    echo "$found"
}

# Prints a value of a disk's RAID superblock (MD_NAME, MD_DEVICES), or nothing.
superblock() {
    { mdadm --examine --export "/dev/$1" 2>/dev/null || true; } | sed -n "s/^$2=//p"
}

is_ours() { [[ $(superblock "$1" MD_NAME) == *":$mark" ]]; }

# Prints the devices on top of a disk or partition: arrays, volumes of LVM, encrypted devices.
holders() {
    local entry
    for entry in "/sys/block/$1/holders"/*; do
        if [[ -e $entry ]]; then basename "$entry"; fi
    done
}

label() { blkid --probe --output value --match-tag LABEL "$1" || true; }

# Prints the types of foreign signatures on a device in one line. Ends the script if they cannot be read. wipefs lists
# all; blkid prints none if several contradict each other.
foreign() {
    local found type mine
    found=$(wipefs --noheadings --output TYPE "$1" 2>&1) || fail "the signatures on $1 cannot be read: $found. Nothing was changed"
    mine=$(label "$1")
    for type in $found; do
        case $type in
            linux_raid_member) is_ours "${1#/dev/}" || echo "$type" ;;
            xfs | ext4) [[ $mine == "$mark" ]] || echo "$type" ;;
            *) echo "$type" ;;
        esac
    done | sort -u | paste -sd' '
}

partitions() {
    local entry
    for entry in "/sys/block/$1/$1"p*; do
        if [[ -e $entry ]]; then basename "$entry"; fi
    done
}

# Prints a line for each disk with partitions or foreign signatures.
foreign_disks() {
    local disk parts found
    for disk in "$@"; do
        if [[ -n $(holders "$disk") ]]; then continue; fi # part of the scratch array
        parts=$(partitions "$disk")
        found=$(foreign "/dev/$disk")
        [[ -z $parts ]] || echo "/dev/$disk has partitions: ${parts//$'\n'/ }"
        [[ -z $found ]] || echo "/dev/$disk has the signature of $found"
    done
}

# Ends the script if disks have foreign data, or wipes that data if WIPE_FOREIGN is true.
refuse_or_wipe() {
    local found disk part devices=()
    found=$(foreign_disks "$@")
    [[ -n $found ]] || return 0
    for disk in "$@"; do
        [[ $found == *"/dev/$disk has "* ]] || continue
        for part in $(partitions "$disk"); do devices+=("/dev/$part"); done
        devices+=("/dev/$disk")
    done
    if [[ $wipe_foreign != true ]]; then
        fail "${found//$'\n'/; }: this script did not create it, so nothing was changed. To delete it on this node:" \
            "kubectl debug node/<node> -it --profile sysadmin --image ubuntu -- chroot /host wipefs --all ${devices[*]}" \
            "(or on all nodes: pulumi config set --path operators.localNvmeScratch.wipeForeign true && pulumi up)"
    fi
    log "wiping, because wipeForeign is true: ${found//$'\n'/; }"
    wipefs --quiet --all "${devices[@]}" # rejects devices in use
}

# Ends the script if a disk has another use.
refuse_what_is_in_use() {
    local disk=$1 part holder places stop
    for part in $(partitions "$disk"); do
        if [[ -n $(holders "$disk/$part")$(mounts_of "/dev/$part") ]]; then
            fail "/dev/$disk has partitions, and /dev/$part is in use: nothing was changed"
        fi
    done
    for holder in $(holders "$disk"); do
        if [[ $holder != md* ]] || ! is_ours "$disk"; then
            stop="dmsetup remove /dev/$holder"
            [[ $holder != md* ]] || stop="mdadm --stop /dev/$holder"
            fail "/dev/$disk is part of /dev/$holder, which is not the scratch array: nothing was changed. To delete its data," \
                "on this node: $stop && wipefs --all /dev/$disk"
        fi
    done
    places=$(mounts_of "/dev/$disk")
    # The table also has bind mounts of the file system (subPath volumes).
    if [[ -n $places ]] && ! grep -qxF "$mount_point" <<<"$places"; then
        fail "/dev/$disk is mounted at $(paste -sd' ' <<<"$places"): nothing was changed"
    fi
}

# Prints the running scratch array, if any. Stops an array that started without all its disks.
running_array() {
    local disk holder state
    for disk in "$@"; do
        for holder in $(holders "$disk"); do
            state=$(<"/sys/block/$holder/md/array_state")
            if [[ $state == broken ]]; then
                fail "/dev/$holder has lost a disk, and with it all data (RAID 0). $replace"
            elif [[ $state != @(inactive|clear) ]]; then
                echo "/dev/$holder"
                return
            fi
            log "/dev/$holder did not start; stopping it" >&2
            mdadm --quiet --stop "/dev/$holder"
        done
    done
}

# Assembles the array from the disks' superblocks, or creates it.
start_array() {
    local disk members=0 wanted=0 count
    for disk in "$@"; do
        if is_ours "$disk"; then
            members=$((members + 1))
            count=$(superblock "$disk" MD_DEVICES)
            wanted=$((count > wanted ? count : wanted))
        fi
    done
    if ((wanted > $#)); then
        fail "the scratch array has $wanted disks, but this node only has $# ($*): a disk is lost, and with it all data" \
            "(RAID 0). $replace"
    elif ((wanted > 0 && members == wanted)); then
        log "assembling the array of $*"
        mdadm --quiet --assemble --homehost=any "/dev/md/$mark" "${@/#//dev/}" ||
            fail "the scratch array cannot be assembled. To delete its data: wipefs --all ${*/#//dev/}"
    else
        create_array "$@"
    fi
}

create_array() {
    log "creating a RAID 0 of $# disks: $*"
    # The disks are empty or have this script's superblocks: from an interrupted run, or an array with a replaced disk.
    wipefs --quiet --all "${@/#//dev/}"
    # Without a home host, the array has the same name in every pod.
    mdadm --quiet --create "/dev/md/$mark" --run --homehost=any --name="$mark" --level=0 --raid-devices=$# "${@/#//dev/}"
    created=true
}

format() {
    local found
    found=$(foreign "$1")
    if [[ -n $found && $wipe_foreign != true ]]; then
        fail "$1 has the signature of $found, which this script did not create: nothing was changed. To delete it: wipefs --all $1"
    elif [[ -z $found && $(label "$1") == "$mark" ]]; then
        log "keeping the file system of $1"
        return
    fi
    wipefs --quiet --all "$1"
    log "formatting $1 as $filesystem"
    # Discarding tens of terabytes takes minutes, and the disks are already erased.
    case $filesystem in
        xfs) mkfs.xfs -q -f -K -L "$mark" "$1" ;;
        ext4) mkfs.ext4 -q -F -E nodiscard -L "$mark" "$1" ;;
    esac
}

mount_on_host() {
    local there
    there=$(mounted)
    if [[ $there == "$1" ]]; then
        log "$1 is already mounted at $mount_point"
        return
    elif [[ -n $there ]]; then
        fail "$there is mounted at $mount_point instead of $1: nothing was changed"
    fi
    mkdir -p "$mount_point"
    mount -o noatime "$1" "$mount_point" ||
        fail "$1 cannot be mounted. To delete its data: wipefs --all $1, then delete this pod"
    [[ $(mounted) == "$1" ]] ||
        fail "the host does not see the mount: mount its parent folder with mountPropagation Bidirectional"
}

main() {
    local disks disk device created=false
    [[ $filesystem == @(xfs|ext4) ]] || fail "FILESYSTEM is '$filesystem'; allowed: xfs, ext4"
    [[ $wipe_foreign == @(true|false) ]] || fail "WIPE_FOREIGN is '$wipe_foreign'; allowed: true, false"
    [[ -r $host_mounts ]] || fail "$host_mounts does not exist: mount the host's /proc at /host/proc"
    mapfile -t disks < <(local_disks)
    ((${#disks[@]})) ||
        fail "this node has no disk of model '$local_disk': remove the label local-nvme-scratch from its pool"
    for disk in "${disks[@]}"; do
        refuse_what_is_in_use "$disk"
    done
    refuse_or_wipe "${disks[@]}"
    if ((${#disks[@]} == 1)); then
        device=/dev/${disks[0]}
    else
        device=$(running_array "${disks[@]}")
        if [[ -z $device ]]; then
            start_array "${disks[@]}"
            device=$(running_array "${disks[@]}")
        fi
        [[ -n $device ]] || fail "the array of ${disks[*]} did not start"
        # An earlier array's file system may still be at the same offset.
        [[ $created == false ]] || wipefs --quiet --all "$device"
    fi
    format "$device"
    mount_on_host "$device"
    # Pods mount this folder as a hostPath of type Directory, and so wait until the file system is there.
    mkdir -p "$mount_point/scratch"
    chmod 1777 "$mount_point/scratch"
    log "ready: $device (${#disks[@]} disks) at $mount_point/scratch"
}

main
